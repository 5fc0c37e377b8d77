/**
 * The service worker: keeps the page's own files, so that it opens without a network and says so. It never keeps an
 * answer of the service: the socket does not pass through here, and nothing but the files below is looked at.
 */

/** Set by the bundler: a digest of every file, and their paths. */
declare const SHELL_VERSION: string;
declare const SHELL_FILES: readonly string[];

/** As much of a service worker's global scope as this file uses; the DOM's types know only windows. */
interface Lasting extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetching extends Lasting {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}
interface NotificationClicked extends Lasting {
  readonly notification: Notification;
}
interface WindowClient {
  postMessage(message: unknown): void;
  focus(): Promise<WindowClient>;
}
interface WorkerScope {
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<readonly WindowClient[]>;
    openWindow(url: string): Promise<WindowClient | null>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: Lasting) => void): void;
  addEventListener(type: "fetch", listener: (event: Fetching) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationClicked) => void): void;
}

// in a service worker this is what `self` is
const scope = self as unknown as WorkerScope;
const PREFIX = "clankie-shell-";
const CACHE = PREFIX + SHELL_VERSION;
/** So long, in milliseconds, the network may take to give the page before the kept one is shown. */
const PATIENCE = 4_000;

scope.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(SHELL_FILES.map((path) => new Request(path, { cache: "reload" }))))
      .then(() => scope.skipWaiting()),
  );
});

scope.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) =>
        Promise.all(
          names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)),
        ),
      )
      .then(() => scope.clients.claim()),
  );
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname, origin } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || !SHELL_FILES.includes(pathname)) return;
  event.respondWith(request.mode === "navigate" ? newest(request) : kept(request));
});

/** The page itself: from the network, so that a new version is seen at once; the kept one without a network. */
async function newest(request: Request): Promise<Response> {
  try {
    return await fetch(request, { signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    return (await (await caches.open(CACHE)).match("/")) ?? Response.error();
  }
}

/** The page's parts: their names change with their content. */
async function kept(request: Request): Promise<Response> {
  return (await (await caches.open(CACHE)).match(request, { ignoreSearch: true })) ?? fetch(request);
}

scope.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const data: unknown = event.notification.data;
  const fragment = typeof data === "object" && data !== null && "fragment" in data ? String(data.fragment) : "#/";
  event.waitUntil(open(fragment));
});

async function open(fragment: string): Promise<void> {
  const [window] = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (window === undefined) {
    await scope.clients.openWindow(`/${fragment}`);
    return;
  }
  await window.focus();
  window.postMessage(fragment);
}
