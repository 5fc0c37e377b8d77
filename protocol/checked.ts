import type { IValidation } from "typia";
import type { FieldError } from "./refusals.js";

/** A strict validator made by typia from a type: an unknown field is a fault. */
export type Validator<T> = (input: unknown) => IValidation<T>;

/** What a validation found: the value as its type, or each fault with its path and what was expected there. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly errors: readonly FieldError[] };

/** At most this many faults go into a reply. */
const MAX_ERRORS = 32;

/** Runs a validator. The faults carry path and expectation, never the value that was sent. */
export function checked<T>(validate: Validator<T>, value: unknown): Checked<T> {
  const outcome = validate(value);
  if (outcome.success) return { ok: true, value: outcome.data };
  const errors = outcome.errors.slice(0, MAX_ERRORS).map(({ path, expected }) => fieldError(path, expected, value));
  return { ok: false, errors };
}

/** Parses JSON text: a fault instead of an exception. */
export function parseJson(text: string): Checked<unknown> {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch {
    return { ok: false, errors: [{ path: "frame", expected: "one JSON document" }] };
  }
}

/** The fields that tell the members of a union apart, and what they may say. */
const DISCRIMINATORS: ReadonlyArray<{ readonly members: RegExp; readonly field: string; readonly values: string }> = [
  { members: /ChoiceDraft/, field: "kind", values: '"choice" or "text"' },
  { members: /ActivityBody/, field: "type", values: '"message", "activity" or "tool"' },
  { members: /"captain"|credential/i, field: "kind", values: '"captain" or "agent"' },
];

function fieldError(typiaPath: string, expected: string, root: unknown): FieldError {
  const path = typiaPath.replace(/^\$input\.?/, "").slice(0, 200);
  if (expected.includes("|") && /__type|[A-Z]\w+(Draft|Body)|Versioned/.test(expected) && isObject(at(root, path))) {
    const known = DISCRIMINATORS.find(({ members }) => members.test(expected));
    const field = known?.field ?? "kind";
    const values = known?.values ?? KIND_VALUES[path.split(".").at(-1) ?? ""] ?? '"captain" or "agent"';
    return { path: path === "" ? field : `${path}.${field}`, expected: values };
  }
  if (path === "") return { path: "params", expected: "an object" };
  return { path, expected: inWords(expected).slice(0, 300) };
}

const KIND_VALUES: { readonly [field: string]: string } = {
  answer: '"choice" or "text"',
  runner: '"command" or "attached"',
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function at(root: unknown, path: string): unknown {
  let here = root;
  for (const name of path === "" ? [] : path.split(".")) here = isObject(here) ? here[name] : undefined;
  return here;
}

const CLEAN = "after trimming, well-formed, with no control character but line feed and tab";

/** typia names what failed by its type; a person wants a sentence. */
function inWords(expected: string): string {
  if (expected === "undefined") return "no such field";
  if (/MinItems<(\d+)>/.test(expected)) return `a list of at least ${/MinItems<(\d+)>/.exec(expected)?.[1]}`;
  if (/MaxItems<(\d+)>/.test(expected)) return `a list of at most ${/MaxItems<(\d+)>/.exec(expected)?.[1]}`;
  if (/DistinctLabels/.test(expected)) return "labels that differ after trimming and Unicode composition";
  if (/^\(?string & WellFormed\)?( \| undefined)?$/.test(expected)) return "well-formed Unicode";
  const words = expected
    .replaceAll(" & WellFormed", "")
    .replaceAll(/string & Clean<0, (\d+)>/g, `text of at most $1 characters ${CLEAN}`)
    .replaceAll(/string & Clean<(\d+), (\d+)>/g, `text of $1 to $2 characters ${CLEAN}`)
    .replaceAll(/string & Passage<(\d+)>/g, "well-formed text of 1 to $1 characters that is not blank")
    .replaceAll(/string & NoNul<(\d+), (\d+)>/g, "text of $1 to $2 characters without NUL")
    .replaceAll(/string & Pattern<"\^\[0-9a-f\]\{8\}[^>]*>/g, "a UUID in lower case")
    .replaceAll(/string & Pattern<"\^\\+d\{4\}[^>]*>/g, "an RFC 3339 time in UTC")
    .replaceAll(/string & MinLength<(\d+)> & MaxLength<(\d+)>/g, "text of $1 to $2 characters")
    .replaceAll(/string & MinLength<(\d+)>/g, "text of at least $1 character")
    .replaceAll(/string & MaxLength<(\d+)>/g, "text of at most $1 characters")
    .replaceAll(/number & Type<"uint32">( & Minimum<\d+>)?( & Maximum<\d+>)?/g, "a whole number from 0 to 4294967295")
    .replaceAll(/number & Minimum<(\d+)>/g, "a number of at least $1")
    .replaceAll(/number & Maximum<(\d+)>/g, "a number of at most $1")
    .replaceAll(/[A-Z]\w*( & [A-Z{]\w*)*( & \{.*\})?|__type(\.o\d+)?/g, (name) =>
      /^(UUID|RFC|NUL|UTC|Unicode)\b/.test(name) ? name : "an object",
    )
    .replace(/^\((.*)\)$/, "$1");
  return [...new Set(words.split(" | "))].join(" or ");
}
