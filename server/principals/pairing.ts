import type { DeviceMode } from "../../protocol/operations.js";
import type { Environment } from "../environment.js";
import { Fault } from "../fault.js";

/** How long a code lives, in milliseconds. */
const CODE_LIFE = 5 * 60_000;
/** Wrong codes before guessing is stopped for a while. */
const GUESSES = 10;
/** For how long, in milliseconds. */
const GUESS_WINDOW = 60_000;
/** Codes that live at once. */
const LIVE_CODES = 16;

/** Letters and digits that are not taken for each other. */
const ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const CODE_LENGTH = 8;

interface Live {
  readonly mode: DeviceMode;
  readonly expiresAt: number;
  readonly deviceExpiresInSeconds?: number;
}

/**
 * One-time pairing codes: 40 random bits, five minutes, used once, and few guesses. They live in memory: a restart ends
 * them. Contract section 5, `device_pair_begin` and `device_pair_complete`.
 */
export class Pairing {
  readonly #environment: Environment;
  readonly #live = new Map<string, Live>();
  #misses: readonly number[] = [];

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  begin(mode: DeviceMode, deviceExpiresInSeconds?: number): { readonly code: string; readonly expiresAt: string } {
    this.#forget();
    if (this.#live.size >= LIVE_CODES) {
      throw new Fault("rate_limited", `${LIVE_CODES} pairing codes are waiting to be used; let one expire first`);
    }
    // 32 letters and digits: five bits of each byte choose evenly.
    const random = Buffer.from(this.#environment.secret(), "base64url");
    const letters = Array.from(random.subarray(0, CODE_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
    const code = `${letters.slice(0, 4)}-${letters.slice(4)}`;
    const expiresAt = this.#environment.now() + CODE_LIFE;
    this.#live.set(code, {
      mode,
      expiresAt,
      ...(deviceExpiresInSeconds !== undefined && { deviceExpiresInSeconds }),
    });
    return { code, expiresAt: new Date(expiresAt).toISOString() };
  }

  /**
   * Uses a code up. Lower case and a missing hyphen are the same code.
   *
   * @throws {Fault} `unauthenticated` for a wrong code, `rate_limited` after too many.
   */
  take(given: string): Pick<Live, "mode" | "deviceExpiresInSeconds"> {
    this.#forget();
    const now = this.#environment.now();
    this.#misses = this.#misses.filter((at) => now - at < GUESS_WINDOW);
    const oldest = this.#misses[0];
    if (this.#misses.length >= GUESSES && oldest !== undefined) {
      throw new Fault("rate_limited", "too many wrong pairing codes; wait a minute", {
        retryAfterMs: GUESS_WINDOW - (now - oldest),
      });
    }
    const letters = given.toUpperCase().replace(/[\s-]/g, "");
    const code = `${letters.slice(0, 4)}-${letters.slice(4)}`;
    const live = this.#live.get(code);
    if (live === undefined) {
      this.#misses = [...this.#misses, now];
      throw new Fault("unauthenticated", "this pairing code is not valid (any more); ask for a new one", {
        reason: "pairing_code",
      });
    }
    this.#live.delete(code);
    return live;
  }

  #forget(): void {
    const now = this.#environment.now();
    for (const [code, { expiresAt }] of this.#live) if (expiresAt <= now) this.#live.delete(code);
  }
}
