import { browserConnector } from "../link/browser.js";
import { FaultError } from "../link/errors.js";
import { openLink } from "../link.js";
import type { Credential } from "./keep.js";
import type { FromService } from "./message.js";

type Outcome =
  | {
      readonly kind: "paired";
      readonly credential: Credential;
      readonly mode: Extract<FromService, { type: "mode" }>["mode"];
    }
  | { readonly kind: "failed"; readonly why: string };

/** So long, in milliseconds, a person waits for the service before being told that it cannot be reached. */
const PATIENCE = 10_000;

/** Redeems a one-time code over a connection of its own, once. */
export async function pair(url: string, code: string, name: string): Promise<Outcome> {
  const link = openLink({ url, connector: browserConnector(WebSocket) });
  const timer = setTimeout(() => link.close(), PATIENCE);
  try {
    await link.ready();
    const { deviceId, token, mode } = await link.call("device_pair_complete", { code, name });
    return { kind: "paired", credential: { deviceId, name, token }, mode };
  } catch (error) {
    return { kind: "failed", why: failureWords(error) };
  } finally {
    clearTimeout(timer);
    link.close();
  }
}

function failureWords(error: unknown): string {
  if (!(error instanceof FaultError)) return "The service could not be reached. Try again.";
  switch (error.code) {
    case "rate_limited": {
      const seconds = Math.ceil((error.data?.retryAfterMs ?? 0) / 1000);
      return seconds > 0
        ? `Too many codes were tried. Wait ${seconds} s, then try again.`
        : "Too many codes were tried. Wait a while, then try again.";
    }
    case "invalid_params":
      return error.data?.errors?.some(({ path }) => path === "name") === true
        ? "That name cannot be used: 1 to 256 characters, no control characters."
        : "That is not a code this service gives.";
    case "unauthenticated":
    case "forbidden":
      return "That code is wrong, was used already, or has expired. Ask for a new one.";
    case "shutting_down":
    case "storage_unavailable":
      return "The service cannot pair devices right now. Try again in a moment.";
    default:
      return "The service could not pair this device. Ask for a new code.";
  }
}
