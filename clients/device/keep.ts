import type { Draft } from "./state.js";

/** What this browser keeps of a pairing. The token is only ever here and in a frame of the socket, never in a URL. */
export interface Credential {
  readonly deviceId: string;
  readonly name: string;
  readonly token: string;
}

const CREDENTIAL = "clankie.device";
const DRAFTS = "clankie.drafts";
const NOTIFY = "clankie.notify";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Storage throws where a browser forbids it: then there is nothing. */
function read(storage: () => Storage, key: string): unknown {
  try {
    return JSON.parse(storage().getItem(key) ?? "null") as unknown;
  } catch {
    return undefined;
  }
}

function write(storage: () => Storage, key: string, value: unknown): boolean {
  try {
    if (value === undefined) storage().removeItem(key);
    else storage().setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

const local = (): Storage => localStorage;
/** Drafts end with the tab. */
const tab = (): Storage => sessionStorage;

export function keptCredential(): Credential | undefined {
  const kept = read(local, CREDENTIAL);
  if (!isObject(kept)) return undefined;
  const { deviceId, name, token } = kept;
  return typeof deviceId === "string" && typeof name === "string" && typeof token === "string"
    ? { deviceId, name, token }
    : undefined;
}

/** Whether it could be kept. */
export const keepCredential = (credential: Credential): boolean => write(local, CREDENTIAL, credential);

export function forgetEverything(): void {
  write(local, CREDENTIAL, undefined);
  write(local, NOTIFY, undefined);
  write(tab, DRAFTS, undefined);
}

/** Hears when another tab of this browser pairs or forgets. */
export function onCredentialChange(listener: () => void): void {
  addEventListener("storage", ({ key }) => {
    if (key === CREDENTIAL || key === null) listener();
  });
}

export function keptDrafts(): { readonly [requestId: string]: Draft } {
  const kept = read(tab, DRAFTS);
  if (!isObject(kept)) return {};
  const drafts: { [requestId: string]: Draft } = {};
  for (const [requestId, draft] of Object.entries(kept)) {
    if (!isObject(draft) || typeof draft["text"] !== "string") continue;
    const choice = typeof draft["choice"] === "string" ? draft["choice"] : undefined;
    drafts[requestId] = { choice, text: draft["text"] };
  }
  return drafts;
}

export const keepDrafts = (drafts: { readonly [requestId: string]: Draft }): boolean => write(tab, DRAFTS, drafts);

export const wantsToBeNotified = (): boolean => read(local, NOTIFY) === true;
export const keepWish = (wish: boolean): boolean => write(local, NOTIFY, wish ? true : undefined);
