import typia from "typia";
import type { CredentialStamp } from "../../machines/context.js";
import type { DeviceMode } from "../../protocol/operations.js";

/** How principals are stored: the digest of a token, never the token. Contract section 2. */
interface Stored {
  /** SHA-256 of the token, hexadecimal. */
  readonly digest: string;
  /** Grows by one at each rotation. */
  readonly generation: number;
  readonly createdAt: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
}

export interface CredentialRecord extends Stored {
  readonly kind: "operator" | "captain" | "agent";
  readonly id: string;
  /** For an agent: the one conversation it is bound to. */
  readonly conversationId?: string;
  /** The operator credential that issued it. */
  readonly issuedBy?: CredentialStamp;
}

export interface DeviceRecord extends Stored {
  readonly kind: "device";
  readonly id: string;
  readonly name: string;
  readonly mode: DeviceMode;
  readonly lastSeenAt?: string;
}

export type PrincipalRecord = CredentialRecord | DeviceRecord;

const validate = typia.createValidateEquals<PrincipalRecord>();

/** Reads a stored principal; `null` where it does not parse. */
export function parsePrincipal(value: Uint8Array): PrincipalRecord | null {
  try {
    const outcome = validate(JSON.parse(Buffer.from(value).toString("utf8")));
    return outcome.success ? outcome.data : null;
  } catch {
    return null;
  }
}

/** Devices and credentials are named apart: a device can never be taken for a credential of the same id. */
export const principalKey = ({ kind, id }: Pick<CredentialStamp, "kind" | "id">): string =>
  `${PRINCIPALS}${kind === "device" ? "device" : "credential"}/${id}`;

export const PRINCIPALS = "principal/";
