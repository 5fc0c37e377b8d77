/**
 * An older strict client, written from contract section 4 alone and from nothing of ours: it knows the envelope, and the
 * two lifecycle events with exactly their fields. One field more or less, and it refuses the tail.
 */
export function parseAsOlderClient(event: unknown): void {
  const record = object(event, "event");
  check(record["schemaVersion"] === 1, "schemaVersion 1");
  text(record, "conversationId", 512);
  text(record, "cursor", 4_096);
  check(Number.isSafeInteger(record["revision"]) && Number(record["revision"]) >= 0, "revision");
  check(RFC3339_UTC.test(String(record["occurredAt"])), "occurredAt");
  switch (record["type"]) {
    case "input_requested": {
      exactly(record, ["requestId", "prompt", "inputKind", "options"]);
      check(UUID.test(String(record["requestId"])), "requestId");
      text(record, "prompt", 2_000);
      const { inputKind, options } = record;
      check(inputKind === "text" || inputKind === "choice", "inputKind");
      check(
        Array.isArray(options) && options.every((label) => typeof label === "string"),
        "options: labels as strings",
      );
      const count = (options as readonly string[]).length;
      check(inputKind === "text" ? count === 0 : count >= 2 && count <= 8, "options: how many");
      check(
        (options as readonly string[]).every((label) => label.length >= 1 && label.length <= 200),
        "options: length",
      );
      return;
    }
    case "input_resolved":
      exactly(record, ["requestId", "outcome"]);
      check(UUID.test(String(record["requestId"])), "requestId");
      check(record["outcome"] === "submitted" || record["outcome"] === "cancelled", "outcome");
      return;
    default:
      // It looks no further at what it does not know, but the contract names no other types than these.
      check(OTHER_TYPES.includes(String(record["type"])), "type");
  }
}

const ENVELOPE = ["schemaVersion", "conversationId", "cursor", "revision", "occurredAt", "type"];
const OTHER_TYPES = ["message", "turn", "activity", "tool", "session"];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const RFC3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

function exactly(record: Readonly<Record<string, unknown>>, fields: readonly string[]): void {
  const expected = [...ENVELOPE, ...fields].sort().join();
  check(Object.keys(record).sort().join() === expected, `exactly the fields ${expected}`);
}

function text(record: Readonly<Record<string, unknown>>, field: string, most: number): void {
  const value = record[field];
  check(typeof value === "string" && value.length >= 1 && value.length <= most, field);
}

function object(value: unknown, what: string): Readonly<Record<string, unknown>> {
  check(typeof value === "object" && value !== null && !Array.isArray(value), what);
  return value as Readonly<Record<string, unknown>>;
}

function check(holds: boolean, expected: string): void {
  if (!holds) throw new Error(`an older client refuses this event: expected ${expected}`);
}
