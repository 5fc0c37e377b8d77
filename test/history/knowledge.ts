import {
  entry,
  type Findings,
  fieldOf,
  type History,
  Known,
  type QuestionSeen,
  questionResultOf,
  questionsIn,
  questionsOf,
  returned,
} from "./operations.js";
import { requestIdIn } from "./records.js";
import { acceptedRunOf, type Streams, snapshotsSeen } from "./streams.js";

/** Revisions, cursors and versions only grow; an incarnation that is over does not come back. */
export function checkGrowth(history: History, streams: Streams, findings: Findings): void {
  interface Sight {
    readonly at: number;
    readonly invokedAt: number;
    readonly revision?: number;
    readonly cursor?: string;
    readonly version?: number;
    readonly incarnationId?: string;
  }
  const sights = new Map<string, Sight[]>();
  const see = (conversationId: string, sight: Sight): void => {
    entry(sights, conversationId, () => []).push(sight);
  };
  for (const { snapshot, operation } of snapshotsSeen(history)) {
    see(snapshot.conversationId, {
      at: operation.endedAt,
      invokedAt: operation.invokedAt,
      revision: snapshot.revision,
      cursor: snapshot.safeCursor,
      incarnationId: snapshot.incarnationId,
      ...(operation.method === "conversation_subscribe" && { version: Number(returned(operation, "version")) }),
    });
  }
  for (const operation of history.operations) {
    const result = questionResultOf(operation);
    const { endedAt: at, invokedAt } = operation;
    if (result !== undefined) {
      see(result.conversationId, {
        at,
        invokedAt,
        ...(result.revision !== undefined && { revision: result.revision }),
        ...(result.safeCursor !== undefined && { cursor: result.safeCursor }),
        ...(result.incarnationId !== undefined && { incarnationId: result.incarnationId }),
      });
    }
    const revision = returned(operation, "revision");
    if (operation.method === "conversation_send" && typeof revision === "number") {
      see(String(operation.params["conversationId"]), { at, invokedAt, revision });
    }
  }
  // What was told unasked has no moment at which it had to be true, but later requests have to know of it.
  for (const { snapshot, version, at } of streams.mirrored) {
    see(snapshot.conversationId, {
      at,
      invokedAt: Number.POSITIVE_INFINITY,
      revision: snapshot.revision,
      cursor: snapshot.safeCursor,
      version,
    });
  }

  for (const [conversationId, all] of sights) {
    all.sort((one, other) => one.at - other.at);
    const revisions = new Known<number>();
    const cursors = new Known<string>();
    const versions = new Known<number>();
    const lives: { readonly id: string; readonly at: number; overAt: number }[] = [];
    for (const { at, invokedAt, revision, cursor, version, incarnationId } of all) {
      const known = {
        revision: revisions.before(invokedAt),
        cursor: cursors.before(invokedAt),
        version: versions.before(invokedAt),
      };
      if (Number.isFinite(invokedAt)) {
        if (revision !== undefined && known.revision !== undefined && revision < known.revision) {
          findings.add("revision_fell", at, `${conversationId}: revision ${revision} after ${known.revision}`);
        }
        if (cursor !== undefined && known.cursor !== undefined && cursor < known.cursor) {
          findings.add("version_fell", at, `${conversationId}: cursor ${cursor} after ${known.cursor}`);
        }
        if (version !== undefined && known.version !== undefined && version < known.version) {
          findings.add("version_fell", at, `${conversationId}: version ${version} after ${known.version}`);
        }
      }
      if (revision !== undefined) revisions.add(at, revision);
      if (cursor !== undefined) cursors.add(at, cursor);
      if (version !== undefined) versions.add(at, version);
      if (incarnationId === undefined) continue;
      const life = lives.find(({ id }) => id === incarnationId);
      if (life !== undefined && life.overAt < invokedAt) {
        findings.add("revision_fell", at, `${conversationId}: incarnation ${incarnationId} came back`);
      }
      for (const other of lives) {
        if (other.id !== incarnationId && other.at < invokedAt) other.overAt = Math.min(other.overAt, at);
      }
      if (life === undefined) lives.push({ id: incarnationId, at, overAt: Number.POSITIVE_INFINITY });
    }
  }
}

const KEPT = 32;

/** Nothing that was acknowledged is missing later: receipts, conversations, revocations. */
export function checkAcknowledged(history: History, findings: Findings): void {
  const receipts = new Map<string, { readonly requestId: string; readonly resolvedAt: string; at: number }[]>();
  const known = new Map<string, { readonly requestId: string; readonly resolvedAt: string; at: number }>();
  for (const operation of history.operations) {
    for (const { conversationId, requestId, resolvedAt, status } of questionsOf(operation)) {
      if (status === "pending" || resolvedAt === undefined) continue;
      const seen = known.get(requestId);
      if (seen !== undefined) seen.at = Math.min(seen.at, operation.endedAt);
      else {
        const receipt = { requestId, resolvedAt, at: operation.endedAt };
        known.set(requestId, receipt);
        entry(receipts, conversationId, () => []).push(receipt);
      }
    }
  }
  for (const ofConversation of receipts.values()) {
    ofConversation.sort((one, other) => (one.resolvedAt < other.resolvedAt ? -1 : 1));
  }
  for (const { snapshot, operation } of snapshotsSeen(history)) {
    const kept = Object.values(snapshot.receipts);
    const oldest =
      kept.length < KEPT
        ? ""
        : kept.reduce((least, { resolvedAt = "" }) => (resolvedAt < least ? resolvedAt : least), "~");
    const all = receipts.get(snapshot.conversationId) ?? [];
    for (let index = all.length - 1; index >= 0; index -= 1) {
      const receipt = all[index];
      if (receipt === undefined || receipt.resolvedAt <= oldest) break;
      if (receipt.at < operation.invokedAt && !(receipt.requestId in snapshot.receipts)) {
        findings.add(
          "acknowledged_lost",
          operation.endedAt,
          `the receipt of ${receipt.requestId} was seen and is not in the snapshot, which keeps ${kept.length}`,
        );
      }
    }
  }

  const made = new Map<string, number>();
  const gone = new Map<string, number>();
  const note = (of: Map<string, number>, id: unknown, at: number): void => {
    if (typeof id === "string" && !of.has(id)) of.set(id, at);
  };
  for (const operation of history.operations) {
    if (operation.outcome.kind !== "result") continue;
    const { endedAt: at, params, method } = operation;
    if (method === "conversation_create") {
      note(made, fieldOf(returned(operation, "conversation"), "conversationId"), at);
    }
    if (method === "credential_issue") note(made, returned(operation, "credentialId"), at);
    if (method === "device_pair_complete") note(made, returned(operation, "deviceId"), at);
    if (method === "device_revoke") note(gone, params["deviceId"], at);
    if (method === "credential_revoke") note(gone, params["credentialId"], at);
  }
  const isKnown = (of: Map<string, number>, id: string, at: number): boolean =>
    (of.get(id) ?? Number.POSITIVE_INFINITY) < at;
  for (const operation of history.operations) {
    const { endedAt, invokedAt, outcome, params, method } = operation;
    const { conversationId } = params;
    if (
      outcome.kind === "error" &&
      outcome.code === "unknown_conversation" &&
      typeof conversationId === "string" &&
      isKnown(made, conversationId, invokedAt)
    ) {
      findings.add("acknowledged_lost", endedAt, `conversation ${conversationId} was made and is unknown`);
    }
    if (outcome.kind !== "result" || (method !== "device_list" && method !== "credential_list")) continue;
    const [list, idName] = method === "device_list" ? ["devices", "deviceId"] : ["credentials", "credentialId"];
    const shown = new Map(
      (returned(operation, list ?? "") as readonly unknown[]).map((each) => [
        String(fieldOf(each, idName ?? "")),
        fieldOf(each, "revokedAt"),
      ]),
    );
    for (const [id, revokedAt] of shown) {
      if (revokedAt === undefined && isKnown(gone, id, invokedAt)) {
        findings.add("acknowledged_lost", endedAt, `${id} was revoked and is not`);
      }
    }
    const makes = method === "device_list" ? "device_pair_complete" : "credential_issue";
    for (const other of history.operations) {
      if (other.method !== makes || other.outcome.kind !== "result" || other.endedAt >= invokedAt) continue;
      const id = String(returned(other, idName ?? ""));
      if (!shown.has(id)) findings.add("acknowledged_lost", endedAt, `${id} was made and is not listed`);
    }
  }
}

/** A continuation ends once, and its end stays as it is. */
export function checkContinuations(history: History, streams: Streams, findings: Findings): void {
  interface Sight {
    readonly at: number;
    readonly invokedAt: number;
    readonly question: QuestionSeen;
  }
  const sights = new Map<string, Sight[]>();
  const see = (sight: Sight): void => {
    if (sight.question.continuation !== undefined) {
      entry(sights, sight.question.requestId, () => []).push(sight);
    }
  };
  for (const operation of history.operations) {
    for (const question of questionsOf(operation)) {
      see({ at: operation.endedAt, invokedAt: operation.invokedAt, question });
    }
  }
  for (const { snapshot, at } of streams.mirrored) {
    for (const question of questionsIn(snapshot)) see({ at, invokedAt: Number.NEGATIVE_INFINITY, question });
  }
  for (const [requestId, all] of sights) {
    all.sort((one, other) => one.at - other.at);
    let end: { readonly text: string; readonly at: number } | undefined;
    for (const { at, invokedAt, question } of all) {
      const { state, reasonCode = "" } = question.continuation ?? { state: "" };
      const text = `${state} ${reasonCode}`;
      if (state === "accepted") {
        if (end !== undefined && end.at < invokedAt) {
          findings.add("continuation_changed", at, `${requestId}: accepted after ${end.text}`);
        }
      } else if (end === undefined) end = { text, at };
      else if (end.text !== text) findings.add("continuation_changed", at, `${requestId}: ${text} after ${end.text}`);
    }
  }
}

/** No run starts twice, after its end, in another life, or without a reason to. */
export function checkRuns(history: History, streams: Streams, findings: Findings): void {
  const mentioned = new Map<string, number>();
  const endedAt = new Map<string, number>();
  const receiptOf = new Map<string, { readonly requestId: string; readonly status: string; readonly runId?: string }>();
  const earliest = (of: Map<string, number>, key: string, at: number): void => {
    of.set(key, Math.min(at, of.get(key) ?? Number.POSITIVE_INFINITY));
  };
  const seeQuestion = (question: QuestionSeen, at: number): void => {
    const { continuation, requestId, status } = question;
    if (status !== "pending") {
      receiptOf.set(requestId, { requestId, status, ...(continuation && { runId: continuation.runId }) });
    }
    if (continuation === undefined) return;
    earliest(mentioned, continuation.runId, at);
    if (continuation.state !== "accepted") earliest(endedAt, continuation.runId, at);
  };
  let isOpen = false;
  for (const operation of history.operations) {
    for (const question of questionsOf(operation)) seeQuestion(question, operation.endedAt);
    const runId = acceptedRunOf(operation);
    if (runId !== undefined) earliest(mentioned, runId, operation.endedAt);
    const mayStart = operation.method === "conversation_send" || operation.method === "input_answer";
    if (mayStart && operation.outcome.kind !== "result") isOpen = true;
    const { runId: target } = operation.params;
    const isDone = operation.outcome.kind === "result" && typeof target === "string";
    if (isDone && (operation.method === "run_settle" || operation.method === "run_cancel")) {
      earliest(endedAt, target, operation.endedAt);
    }
  }
  for (const { snapshot, at } of streams.mirrored) {
    for (const question of questionsIn(snapshot)) seeQuestion(question, at);
    if (snapshot.activeRun) earliest(mentioned, snapshot.activeRun.runId, at);
  }
  for (const { snapshot, operation } of snapshotsSeen(history)) {
    if (snapshot.activeRun) earliest(mentioned, snapshot.activeRun.runId, operation.endedAt);
  }
  for (const ofConversation of streams.events.values()) {
    for (const { event, at } of ofConversation.values()) {
      if (event.type !== "turn" || event.runId === undefined) continue;
      earliest(mentioned, event.runId, at);
      if (event.phase !== "accepted") earliest(endedAt, event.runId, at);
    }
  }

  const begun = new Map<string, number>();
  /** `from`: since when it may have begun; a claim began somewhere between its request and its reply. */
  const start = (runId: string, requestId: string | undefined, from: number, at: number): void => {
    if (begun.has(runId)) findings.add("run_started_twice", at, `run ${runId}`);
    begun.set(runId, at);
    if ((endedAt.get(runId) ?? Number.POSITIVE_INFINITY) < from) {
      findings.add("run_started_after_end", at, `run ${runId}`);
    }
    const restarted = history.starts
      .slice(1)
      .filter((each) => each < from)
      .at(-1);
    if (restarted !== undefined && (mentioned.get(runId) ?? Number.POSITIVE_INFINITY) < restarted) {
      findings.add("run_replayed", at, `run ${runId} was accepted before the last start`);
    }
    if (!mentioned.has(runId) && !isOpen) findings.add("run_unfounded", at, `run ${runId} was never accepted`);
    if (requestId === undefined) return;
    const receipt = receiptOf.get(requestId);
    if (receipt !== undefined && (receipt.status !== "submitted" || receipt.runId !== runId)) {
      findings.add(
        "run_unfounded",
        at,
        `run ${runId} for ${requestId}, which is ${receipt.status} with ${receipt.runId}`,
      );
    }
    if (receipt === undefined && !isOpen) findings.add("run_unfounded", at, `run ${runId} for unknown ${requestId}`);
  };
  history.records.forEach((record, at) => {
    if (record.type === "run") start(record.runId, record.requestId, at, at);
    if (record.type !== "return") return;
    const operation = history.byOp.get(record.op);
    if (operation?.method !== "run_claim" || operation.endedAt !== at) return;
    const message = returned(operation, "message");
    const requestId = typeof message === "string" ? requestIdIn(message) : undefined;
    start(String(returned(operation, "runId")), requestId, operation.invokedAt, at);
  });
}
