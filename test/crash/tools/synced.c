/*
 * A power cut for tests, by LD_PRELOAD: notes how long each file was when it was last synced. Afterwards whoever ended the
 * process cuts every file to that length: what was never synced is what a power cut may take.
 *
 * CLANKIE_SYNCED names the file of notes: a line of inode, length and time in nanoseconds for each sync that succeeded. The
 * length is taken before the sync: what is written meanwhile is not promised.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int notes = -1;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLANKIE_SYNCED");
  if (path != NULL) notes = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int noted(int fd, const char *name) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  struct stat before;
  int known = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
  int result = real(fd);
  if (result == 0 && known && notes >= 0) {
    struct timespec now;
    char line[96];
    clock_gettime(CLOCK_REALTIME, &now);
    int length = snprintf(line, sizeof line, "%llu %lld %lld%09ld\n", (unsigned long long)before.st_ino,
                          (long long)before.st_size, (long long)now.tv_sec, now.tv_nsec);
    if (write(notes, line, length) != length) abort();
  }
  return result;
}

int fsync(int fd) { return noted(fd, "fsync"); }
int fdatasync(int fd) { return noted(fd, "fdatasync"); }
