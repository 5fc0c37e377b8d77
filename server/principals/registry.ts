import { createHash, timingSafeEqual } from "node:crypto";
import type { CredentialStamp } from "../../machines/context.js";
import type { Caller, Standing } from "../../machines/facts.js";
import type { CredentialView, DeviceMode, DeviceView, PrincipalView } from "../../protocol/operations.js";
import { type Environment, timestamp } from "../environment.js";
import { Fault } from "../fault.js";
import { toBytes } from "../store/json.js";
import type { Compare, Store } from "../store/port.js";
import {
  type CredentialRecord,
  type DeviceRecord,
  PRINCIPALS,
  type PrincipalRecord,
  parsePrincipal,
  principalKey,
} from "./records.js";

/** Which principal a connection presented, at the generation of its token. Looked up again at each use. */
export type Presented =
  | { readonly kind: "stored"; readonly stamp: CredentialStamp }
  | { readonly kind: "run"; readonly runId: string; readonly conversationId: string };

/** The first credentials are named so. Contract section 5. */
export const OPERATOR = "operator";
export const CAPTAIN = "captain";

/** How old `lastSeenAt` may get before it is written again, in milliseconds. */
const LAST_SEEN_STEP = 60_000;

/**
 * Every principal: tokens as digests, looked up at each use. Changes are durable before they are told or take effect
 * here. Contract section 2.
 */
export class PrincipalRegistry {
  readonly #store: Store;
  readonly #environment: Environment;
  readonly #records = new Map<string, { readonly record: PrincipalRecord; readonly stored: Uint8Array }>();
  readonly #byDigest = new Map<string, string>();
  readonly #runs = new Map<string, { readonly runId: string; readonly conversationId: string }>();
  readonly #runDigests = new Map<string, string>();
  readonly #storeIsBack: () => Promise<boolean>;
  #writes: Promise<unknown> = Promise.resolve();

  /** `storeIsBack` brings a faulted store back, and then has `load` called; false while it cannot be had. */
  constructor(store: Store, environment: Environment, storeIsBack: () => Promise<boolean>) {
    this.#store = store;
    this.#environment = environment;
    this.#storeIsBack = storeIsBack;
  }

  /** Reads all records. Those that do not parse are unknown to everyone; their keys are returned for the operator. */
  async load(): Promise<readonly string[]> {
    const damaged: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await this.#store.range(PRINCIPALS, {
        limit: 1_000,
        ...(after !== undefined && { after }),
        onDamage: (key) => damaged.push(key),
      });
      for (const { key, value } of page) {
        const record = parsePrincipal(value);
        if (record === null) damaged.push(key);
        else this.#remember(record, value);
      }
      after = page.at(-1)?.key;
      if (page.length < 1_000) return damaged;
    }
  }

  /** Who presents this token, if anyone. A token that is rotated away, revoked or expired presents nobody. */
  authenticate(token: string): Presented | null {
    const digest = digestOf(token);
    const runId = this.#runDigests.get(digest);
    const run = runId === undefined ? undefined : this.#runs.get(runId);
    if (run !== undefined) return { kind: "run", ...run };
    const key = this.#byDigest.get(digest);
    const record = key === undefined ? undefined : this.#records.get(key)?.record;
    if (record === undefined || !timingSafeEqual(Buffer.from(record.digest), Buffer.from(digest))) return null;
    const stamp = stampOf(record);
    const standing = this.standing(stamp);
    return standing === "good" || standing === "read_only" ? { kind: "stored", stamp } : null;
  }

  /** The principal as it is now. Contract section 2: never cached in a connection. */
  caller(presented: Presented): Caller {
    switch (presented.kind) {
      case "run": {
        const { runId, conversationId } = presented;
        return {
          stamp: { kind: "agent", id: `run:${runId}`, generation: 1 },
          standing: this.#runs.has(runId) ? "good" : "revoked",
          conversationId,
          runId,
        };
      }
      case "stored": {
        const { stamp } = presented;
        const record = this.#records.get(principalKey(stamp))?.record;
        return {
          stamp,
          standing: this.standing(stamp),
          ...(record?.kind === "agent" && record.conversationId !== undefined
            ? { conversationId: record.conversationId }
            : {}),
          ...(record?.kind === "agent" && record.issuedBy !== undefined ? { issuedBy: record.issuedBy } : {}),
        };
      }
      default:
        return presented satisfies never;
    }
  }

  /** How a credential of that generation stands at this moment. */
  standing(stamp: CredentialStamp): Standing {
    const record = this.#records.get(principalKey(stamp))?.record;
    if (record === undefined || record.kind !== stamp.kind || record.revokedAt !== undefined) return "revoked";
    if (record.generation !== stamp.generation) return "rotated";
    if (record.expiresAt !== undefined && this.#environment.now() >= Date.parse(record.expiresAt)) return "expired";
    return record.kind === "device" && record.mode === "read-only" ? "read_only" : "good";
  }

  /** What a commit that depends on these credentials has to find unchanged. */
  fence(stamps: readonly CredentialStamp[]): readonly Compare[] {
    const keys = new Set(stamps.map(principalKey));
    return [...keys].flatMap((key) => {
      const stored = this.#records.get(key)?.stored;
      return stored === undefined ? [] : [{ key, value: stored }];
    });
  }

  view(caller: Caller): PrincipalView {
    const { kind, id } = caller.stamp;
    switch (kind) {
      case "operator":
      case "captain":
        return { kind, id };
      case "device":
        return { kind, id, mode: caller.standing === "read_only" ? "read-only" : "active" };
      case "agent":
        return {
          kind,
          id,
          conversationId: caller.conversationId ?? "",
          ...(caller.runId !== undefined && { runId: caller.runId }),
        };
      default:
        return kind satisfies never;
    }
  }

  /** A token for one run; it ends with the run and is never stored. Contract section 2. */
  openRun(runId: string, conversationId: string): string {
    const token = this.#environment.secret();
    this.#runs.set(runId, { runId, conversationId });
    this.#runDigests.set(digestOf(token), runId);
    return token;
  }

  closeRun(runId: string): void {
    this.#runs.delete(runId);
    for (const [digest, each] of this.#runDigests) if (each === runId) this.#runDigests.delete(digest);
  }

  /** Issues a credential; the token is returned once and not kept. */
  async issue(
    draft: Pick<CredentialRecord, "kind" | "conversationId" | "issuedBy"> & {
      readonly id?: string;
      readonly expiresInSeconds?: number;
    },
  ): Promise<{ readonly record: CredentialRecord; readonly token: string }> {
    const token = this.#environment.secret();
    const { id = this.#environment.uuid(), expiresInSeconds, ...rest } = draft;
    const record: CredentialRecord = {
      ...rest,
      id,
      digest: digestOf(token),
      generation: 1,
      createdAt: timestamp(this.#environment),
      ...this.#expiry(expiresInSeconds),
    };
    await this.#write(record.kind, id, () => record);
    return { record, token };
  }

  /** A new token for the same credential; the old one stops working with the commit. */
  async rotate(
    id: string,
    expiresInSeconds?: number,
  ): Promise<{ readonly record: PrincipalRecord; readonly token: string }> {
    const token = this.#environment.secret();
    const record = await this.#write("operator", id, (current) => {
      if (current === undefined || current.kind === "device") throw unknownPrincipal("credentialId", id);
      if (current.revokedAt !== undefined) throw revokedAlready("credentialId", id);
      const { expiresAt: _, ...rest } = current;
      return {
        ...rest,
        digest: digestOf(token),
        generation: current.generation + 1,
        ...this.#expiry(expiresInSeconds),
      };
    });
    return { record, token };
  }

  /**
   * A new token for a credential, also one that is revoked or has expired. Only for who owns the data directory, at the
   * start: over the socket a revocation is for good.
   */
  async renew(id: string): Promise<string> {
    const token = this.#environment.secret();
    await this.#write("operator", id, (current) => {
      if (current === undefined || current.kind === "device") throw unknownPrincipal("credentialId", id);
      const { expiresAt: _, revokedAt: __, ...rest } = current;
      return { ...rest, digest: digestOf(token), generation: current.generation + 1 };
    });
    return token;
  }

  /** Revokes a credential for good. Repeating it changes nothing. */
  revokeCredential(id: string): Promise<PrincipalRecord> {
    return this.#write("operator", id, (current) => {
      if (current === undefined || current.kind === "device") throw unknownPrincipal("credentialId", id);
      return { ...current, revokedAt: current.revokedAt ?? timestamp(this.#environment) };
    });
  }

  async addDevice(
    name: string,
    mode: DeviceMode,
    expiresInSeconds?: number,
  ): Promise<{ readonly record: DeviceRecord; readonly token: string }> {
    const token = this.#environment.secret();
    const id = this.#environment.uuid();
    const createdAt = timestamp(this.#environment);
    const record: DeviceRecord = {
      kind: "device",
      id,
      name: name.trim(),
      mode,
      digest: digestOf(token),
      generation: 1,
      createdAt,
      lastSeenAt: createdAt,
      ...this.#expiry(expiresInSeconds),
    };
    await this.#write("device", id, () => record);
    return { record, token };
  }

  setDeviceMode(id: string, mode: DeviceMode): Promise<DeviceRecord> {
    return this.#writeDevice(id, (current) => ({ ...current, mode }));
  }

  /** Revokes a device for good. Repeating it changes nothing. */
  revokeDevice(id: string): Promise<DeviceRecord> {
    return this.#writeDevice(id, (current) => ({
      ...current,
      revokedAt: current.revokedAt ?? timestamp(this.#environment),
    }));
  }

  /** Notes that a device was here. Best effort: the note is not worth a refusal. */
  seen(stamp: CredentialStamp): void {
    if (stamp.kind !== "device") return;
    const record = this.#records.get(principalKey(stamp))?.record;
    if (record?.kind !== "device") return;
    if (this.#environment.now() - Date.parse(record.lastSeenAt ?? record.createdAt) < LAST_SEEN_STEP) return;
    void this.#writeDevice(stamp.id, (current) => ({ ...current, lastSeenAt: timestamp(this.#environment) })).catch(
      () => undefined,
    );
  }

  devices(): readonly DeviceView[] {
    return this.#all()
      .filter((record) => record.kind === "device")
      .map(deviceView);
  }

  credentials(): readonly CredentialView[] {
    return this.#all().flatMap((record) =>
      record.kind === "device"
        ? []
        : [
            {
              credentialId: record.id,
              kind: record.kind,
              ...(record.conversationId !== undefined && { conversationId: record.conversationId }),
              createdAt: record.createdAt,
              ...(record.expiresAt !== undefined && { expiresAt: record.expiresAt }),
              ...(record.revokedAt !== undefined && { revokedAt: record.revokedAt }),
            },
          ],
    );
  }

  /** Does this token still belong to this credential? */
  holds(id: string, token: string): boolean {
    return this.#byDigest.get(digestOf(token)) === principalKey({ kind: "operator", id });
  }

  has(id: string): boolean {
    return this.#records.has(principalKey({ kind: "operator", id }));
  }

  /** How a credential stands now, whatever its generation. */
  standingOf(id: string): Standing {
    const record = this.#records.get(principalKey({ kind: "operator", id }))?.record;
    return record === undefined ? "revoked" : this.standing(stampOf(record));
  }

  /** Every credential and device that was revoked. */
  revoked(): readonly CredentialStamp[] {
    return this.#all()
      .filter(({ revokedAt }) => revokedAt !== undefined)
      .map(stampOf);
  }

  #all(): readonly PrincipalRecord[] {
    return [...this.#records.values()]
      .map(({ record }) => record)
      .sort((one, other) => (one.createdAt < other.createdAt ? -1 : one.createdAt > other.createdAt ? 1 : 0));
  }

  #expiry(seconds: number | undefined): { expiresAt?: string } {
    return seconds === undefined
      ? {}
      : { expiresAt: new Date(this.#environment.now() + seconds * 1_000).toISOString() };
  }

  #writeDevice(id: string, change: (current: DeviceRecord) => DeviceRecord): Promise<DeviceRecord> {
    return this.#write("device", id, (current) => {
      if (current === undefined || current.kind !== "device") throw unknownPrincipal("deviceId", id);
      return change(current);
    });
  }

  /** One change at a time; it takes effect here when it is durable, and not before. */
  #write<R extends PrincipalRecord>(
    kind: CredentialStamp["kind"],
    id: string,
    change: (current: PrincipalRecord | undefined) => R,
  ): Promise<R> {
    const written = this.#writes.then(async () => {
      if (!(await this.#storeIsBack())) throw storageFailed();
      const key = principalKey({ kind, id });
      const current = this.#records.get(key);
      const record = change(current?.record);
      const value = toBytes(record);
      const outcome = await this.#store.commit({
        head: key,
        expected: current?.stored ?? null,
        puts: [{ key, value }],
        deletes: [],
      });
      switch (outcome.outcome) {
        case "ok":
          this.#remember(record, value);
          return record;
        case "unknown":
          // What is there decides; by now the registry has been read again. Contract section 8.
          if ((await this.#storeIsBack()) && this.#isStored(key, value)) return record;
          throw storageFailed();
        case "conflict":
          await this.load();
          throw storageFailed();
        case "failed":
          await this.#storeIsBack();
          throw storageFailed();
        default:
          return outcome satisfies never;
      }
    });
    this.#writes = written.catch(() => undefined);
    return written;
  }

  #isStored(key: string, value: Uint8Array): boolean {
    const stored = this.#records.get(key)?.stored;
    return stored !== undefined && Buffer.from(stored).equals(value);
  }

  #remember(record: PrincipalRecord, stored: Uint8Array): void {
    const key = principalKey(record);
    const previous = this.#records.get(key)?.record;
    if (previous !== undefined) this.#byDigest.delete(previous.digest);
    this.#records.set(key, { record, stored });
    this.#byDigest.set(record.digest, key);
  }
}

const stampOf = ({ kind, id, generation }: PrincipalRecord): CredentialStamp => ({ kind, id, generation });

export const deviceView = (record: DeviceRecord): DeviceView => ({
  deviceId: record.id,
  name: record.name,
  mode: record.mode,
  createdAt: record.createdAt,
  ...(record.lastSeenAt !== undefined && { lastSeenAt: record.lastSeenAt }),
  ...(record.expiresAt !== undefined && { expiresAt: record.expiresAt }),
  ...(record.revokedAt !== undefined && { revokedAt: record.revokedAt }),
});

const digestOf = (token: string): string => createHash("sha256").update(token).digest("hex");

const unknownPrincipal = (path: string, id: string): Fault =>
  new Fault("invalid_params", `no ${path === "deviceId" ? "device" : "credential"} is called ${JSON.stringify(id)}`, {
    errors: [{ path, expected: path === "deviceId" ? "the id of a paired device" : "the id of a credential" }],
    reason: "not_found",
  });

const revokedAlready = (path: string, id: string): Fault =>
  new Fault("invalid_params", `the credential ${JSON.stringify(id)} is revoked`, {
    errors: [{ path, expected: "a credential that is not revoked" }],
    reason: "revoked",
  });

const storageFailed = (): Fault =>
  new Fault("storage_unavailable", "the store did not take the change; nothing was changed that could be confirmed");
