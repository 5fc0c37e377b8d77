import type { tags } from "typia";

/**
 * The bounds of contract section 3, once as numbers for people and code, once as types for the validators.
 * A character is a UTF-16 code unit.
 */
export const BOUNDS = {
  prompt: 2_000,
  optionsMin: 2,
  optionsMax: 8,
  label: 200,
  description: 500,
  answerText: 4_000,
  title: 256,
  messageText: 16_384,
  path: 4_096,
  runId: 256,
  reason: 100,
  id: 512,
  cursor: 4_096,
  receipts: 32,
  stateBytes: 512_000,
  retainedEvents: 1_000,
  eventPage: 500,
  eventPageDefault: 200,
  frameToService: 65_536,
  frameToClient: 1_048_576,
  listPage: 1_000,
  queuedRuns: 16,
} as const;

/**
 * Text that a person wrote or will read: the length is counted after trimming, the text is well-formed Unicode and
 * holds no control character other than a line feed and a tab.
 */
export interface Clean<Min extends number, Max extends number>
  extends tags.TagBase<{
    target: "string";
    kind: "clean";
    value: undefined;
    exclusive: true;
    validate: `((t) => ${Min} <= t.length && t.length <= ${Max} && $input.isWellFormed() && !/[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]/.test($input))($input.trim())`;
    schema: { minLength: Min; "x-trimmed-length": [Min, Max] };
  }> {}

/** Text that is passed on as it is: well-formed, not blank, at most `Max` characters. Controls are allowed. */
export interface Passage<Max extends number>
  extends tags.TagBase<{
    target: "string";
    kind: "passage";
    value: undefined;
    exclusive: true;
    validate: `$input.length <= ${Max} && $input.isWellFormed() && $input.trim().length > 0`;
    schema: { minLength: 1; maxLength: Max };
  }> {}

/** A list of options whose labels differ after trimming and Unicode composition (NFC). */
export interface DistinctLabels
  extends tags.TagBase<{
    target: "array";
    kind: "distinctLabels";
    value: undefined;
    exclusive: true;
    validate: `new Set($input.map((o, i) => typeof o?.label === "string" ? o.label.trim().normalize("NFC") : i)).size === $input.length`;
    schema: { uniqueItems: true };
  }> {}

/** A path or an argument: no NUL, well-formed. */
export interface NoNul<Min extends number, Max extends number>
  extends tags.TagBase<{
    target: "string";
    kind: "noNul";
    value: undefined;
    exclusive: true;
    validate: `${Min} <= $input.length && $input.length <= ${Max} && !$input.includes("\\u0000") && $input.isWellFormed()`;
    schema: { minLength: Min; maxLength: Max };
  }> {}

/** No lone surrogate. */
export interface WellFormed
  extends tags.TagBase<{
    target: "string";
    kind: "wellFormed";
    value: undefined;
    exclusive: true;
    validate: "$input.isWellFormed()";
  }> {}

/** A UUID in lower case; upper case and `urn:uuid:` are refused. */
export type Uuid = string & tags.Pattern<"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$">;
/** Any identifier that is not a UUID: opaque to clients. */
export type Id = string & tags.MinLength<1> & tags.MaxLength<512> & WellFormed;
/** Names a run; opaque. */
export type RunId = string & tags.MinLength<1> & tags.MaxLength<256>;
/** Names an event; opaque, sorts lexicographically in event order. */
export type Cursor = string & tags.MinLength<1> & tags.MaxLength<4096>;
/** RFC 3339 in UTC, as `Date.prototype.toISOString` writes it. */
export type Timestamp = string & tags.Pattern<"^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?Z$">;
/** A counter that never shrinks: revision, version. */
export type Counter = number & tags.Type<"uint32">;
/** A duration in whole seconds, at least one. */
export type Seconds = number & tags.Type<"uint32"> & tags.Minimum<1>;
/** A machine-readable reason. */
export type Reason = string & tags.MinLength<1> & tags.MaxLength<100> & WellFormed;
/** A path in the local file system. */
export type Path = string & NoNul<1, 4096>;
/** One argument of an agent's command. */
export type Argument = string & NoNul<0, 4096>;

export type Prompt = string & Clean<1, 2000>;
export type Label = string & Clean<1, 200>;
export type Description = string & Clean<0, 500>;
export type AnswerText = string & Clean<1, 4000>;
export type Title = string & Clean<1, 256>;
export type MessageText = string & Passage<16384>;
/** A name a person gives to a device, a project or a harness. */
export type Name = string & Clean<1, 256>;
