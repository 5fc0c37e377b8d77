// Writes docs/protocol.schema.json and docs/protocol.md from the compiled types. `--check` only compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../", import.meta.url);
const { protocolSchema } = await import(new URL("dist/protocol/schema.js", root));
const { FAULT_NUMBERS, PROTOCOL_NUMBERS } = await import(new URL("dist/protocol/refusals.js", root));
const { METHODS } = await import(new URL("dist/protocol/requests.js", root));
const { BOUNDS } = await import(new URL("dist/protocol/bounds.js", root));
const { mayCall } = await import(new URL("dist/machines/authority.js", root));

const FAULTS = {
  invalid_params: "A field is not what it has to be; `data.errors` names each with its path and what was expected.",
  unauthenticated: "No token, or one that is rotated away, revoked, expired or unknown.",
  forbidden: "This principal may not do this, or not here.",
  unknown_conversation: "No conversation has this id, or (`data.reason` `unknown_run`) none has this run.",
  ineligible_conversation: "The conversation cannot take this now; `data.reason` says why.",
  question_pending: "Another question waits; `data.requestId` names it. A question is never replaced.",
  question_state_unavailable: "The stored state of this conversation cannot be read; the others go on.",
  storage_unavailable: "Nothing durable can be said now. Read before you repeat anything.",
  queue_full: `${BOUNDS.queuedRuns} runs wait in this conversation.`,
  rate_limited: "Too much at once; `data.retryAfterMs` says when to try again.",
  frame_too_large: `A frame to the service has at most ${BOUNDS.frameToService} bytes.`,
  shutting_down: "The service is stopping.",
};

const PROTOCOL_FAULTS = {
  parse_error: "The frame is not JSON.",
  invalid_request: "The frame is not one JSON-RPC 2.0 request: a batch, a binary frame, a missing id.",
  method_not_found: "There is no such method.",
  internal_error: "The service failed; nothing is known about the request. `data.code` is `internal_error`.",
};

const { components, schemas } = protocolSchema();
const definitions = components.schemas;
const protocol = resolve(schemas[0]);

/** typia names an intersection by its members run together; those serve one place each and are written there. */
const isNameless = (name) => /^(Versioned|InConversation)/.test(name);
function nameOf(ref) {
  return ref.slice("#/components/schemas/".length);
}
function resolve(schema) {
  return schema.$ref === undefined ? schema : definitions[nameOf(schema.$ref)];
}

/** As JSON Schema 2020-12: references into $defs, and strict objects. */
function strict(schema) {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== "object" || schema === null) return schema;
  if (schema.$ref !== undefined) {
    const name = nameOf(schema.$ref);
    return isNameless(name) ? strict(definitions[name]) : { $ref: `#/$defs/${name}` };
  }
  const { readOnly: _, ...rest } = schema;
  const walked = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, strict(value)]));
  if (walked.type === "object" && walked.additionalProperties === undefined) walked.additionalProperties = false;
  return walked;
}

/** Has fields of its own, or is one of several that have. */
function isObject(name) {
  const { type, oneOf } = definitions[name];
  return type === "object" || (oneOf?.some((each) => resolve(each).type === "object") ?? false);
}

const named = Object.keys(definitions)
  .filter((name) => !isNameless(name) && !["Protocol", "Operations", "Notifications"].includes(name))
  .sort();
const members = (schema) => Object.entries(resolve(schema).properties);
const document = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Clankie questions, protocol version 1",
  description: "Made from the types in protocol/. Unknown fields are refused.",
  methods: Object.fromEntries(
    members(protocol.properties.operations).map(([method, { properties }]) => [
      method,
      { params: strict(properties.params), result: strict(properties.result) },
    ]),
  ),
  notifications: Object.fromEntries(members(protocol.properties.notifications).map(([name, s]) => [name, strict(s)])),
  $defs: Object.fromEntries(named.map((name) => [name, strict(definitions[name])])),
};

const code = (text) => `\`${text}\``;

/** A schema in a few words for a table. */
function words(schema) {
  if (schema.$ref !== undefined) {
    const name = nameOf(schema.$ref);
    if (isNameless(name)) return words(definitions[name]);
    return isObject(name) ? `[${name}](#${name.toLowerCase()})` : words(definitions[name]);
  }
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((value) => code(JSON.stringify(value))).join(" or ");
  if (schema.oneOf !== undefined) return [...new Set(schema.oneOf.map(words))].join(" or ");
  switch (schema.type) {
    case "array": {
      const { minItems = 0, maxItems } = schema;
      const count =
        maxItems === undefined ? (minItems === 0 ? "" : `${minItems} or more `) : `${minItems} to ${maxItems} `;
      return `list of ${count}${words(schema.items)}`;
    }
    case "object":
      if (schema.properties !== undefined && Object.keys(schema.properties).length > 0) {
        const required = new Set(schema.required);
        const inner = Object.entries(schema.properties).map(
          ([name, value]) => `${name}${required.has(name) ? "" : "?"}: ${words(value)}`,
        );
        return `{ ${inner.join(", ")} }`;
      }
      return schema.additionalProperties ? `object of ${words(schema.additionalProperties)}` : "`{}`";
    case "string": {
      const trimmed = schema["x-trimmed-length"];
      if (trimmed !== undefined) return `text, ${trimmed[0]} to ${trimmed[1]} characters after trimming`;
      if (schema.pattern?.includes("[0-9a-f]{8}")) return "uuid";
      if (schema.pattern?.includes("\\d{4}")) return "time";
      return schema.maxLength === undefined ? "text" : `text, ${schema.minLength ?? 0} to ${schema.maxLength}`;
    }
    case "integer": {
      const { minimum = 0, maximum } = schema;
      return maximum === undefined
        ? minimum === 0
          ? "whole number"
          : `whole number from ${minimum}`
        : `whole number, ${minimum} to ${maximum}`;
    }
    default:
      return schema.type ?? "any JSON";
  }
}

/** The fields of an object as rows; `schemaVersion` is on every request and is said once. */
function rows(schema) {
  const { properties = {}, required = [] } = resolve(schema);
  const needed = new Set(required);
  return Object.entries(properties)
    .filter(([name]) => name !== "schemaVersion")
    .map(
      ([name, value]) =>
        `| ${code(name)} | ${needed.has(name) ? "yes" : "no"} | ${words(value).replaceAll("|", "\\|")} |`,
    );
}

const fields = (schema) => {
  const found = rows(schema);
  return found.length === 0 ? ["Nothing."] : ["| field | required | what |", "| --- | --- | --- |", ...found];
};

function alternatives(schema) {
  const { oneOf } = resolve(schema);
  if (oneOf === undefined) return fields(schema);
  return oneOf.flatMap((each, index) => [...(index === 0 ? [] : ["", "or", ""]), ...fields(each)]);
}

const CALLERS = [
  ["operator", "operator", "good"],
  ["active device", "device", "good"],
  ["read-only device", "device", "read_only"],
  ["captain", "captain", "good"],
  ["agent", "agent", "good"],
];

function who(method) {
  if (method === "authenticate") return "anyone";
  if (method === "device_pair_complete") return "anyone with a live code";
  if (method === "input_answer" || method === "input_cancel")
    return "operator, active device; anyone else is `refused`";
  return CALLERS.filter(
    ([, kind, standing]) => mayCall({ stamp: { kind, id: "", generation: 1 }, standing }, method).ok,
  )
    .map(([name]) => name)
    .join(", ");
}

const lines = [
  "# The protocol",
  "",
  "<!-- Made by scripts/protocol-docs.mjs from the types in protocol/; do not edit. -->",
  "",
  "`ws://HOST:PORT/v1/socket`, subprotocol `clankie.v1`, JSON-RPC 2.0, one request a text frame. Every `params` carries",
  "`schemaVersion: 1`. Objects are strict: a field that is not listed is refused. The same as JSON Schema:",
  "[protocol.schema.json](protocol.schema.json).",
  "",
  "## Errors",
  "",
  "A fault is a JSON-RPC error; programs look at `error.data.code`.",
  "",
  "| number | `data.code` | meaning |",
  "| --- | --- | --- |",
  ...Object.entries(FAULT_NUMBERS).map(([name, number]) => `| ${number} | ${code(name)} | ${FAULTS[name]} |`),
  "",
  "What is wrong with a frame, rather than with its parameters, has JSON-RPC's own numbers; `data.code` is then",
  "`invalid_params` too.",
  "",
  "| number | name | meaning |",
  "| --- | --- | --- |",
  ...Object.entries(PROTOCOL_NUMBERS).map(([name, number]) => `| ${number} | ${name} | ${PROTOCOL_FAULTS[name]} |`),
  "",
  "## Methods",
  "",
  ...METHODS.flatMap((method) => {
    const { params, result } = resolve(protocol.properties.operations).properties[method].properties;
    return [
      `### ${method}`,
      "",
      `Who: ${who(method)}.`,
      "",
      ...alternatives(params),
      "",
      "Result:",
      "",
      ...alternatives(result),
      "",
    ];
  }),
  "## Notifications",
  "",
  ...members(protocol.properties.notifications).flatMap(([name, schema]) => [`### ${name}`, "", ...fields(schema), ""]),
  "## Objects",
  "",
  ...named
    .filter(isObject)
    .flatMap((name) => [`### ${name}`, "", ...alternatives({ $ref: `#/components/schemas/${name}` }), ""]),
];
for (const [group, texts, numbers] of [
  ["FAULTS", FAULTS, FAULT_NUMBERS],
  ["PROTOCOL_FAULTS", PROTOCOL_FAULTS, PROTOCOL_NUMBERS],
]) {
  for (const name of Object.keys(numbers))
    if (texts[name] === undefined) throw new Error(`${group} says nothing of ${name}`);
}

const outputs = [
  [new URL("docs/protocol.schema.json", root), `${JSON.stringify(document, null, 2)}\n`],
  [new URL("docs/protocol.md", root), `${lines.join("\n").trimEnd()}\n`],
];
let stale = 0;
for (const [url, text] of outputs) {
  if (!process.argv.includes("--check")) writeFileSync(url, text);
  else if (read(url) !== text) {
    console.error(`${fileURLToPath(url)} is not current; run: node scripts/protocol-docs.mjs`);
    stale += 1;
  }
}
process.exitCode = stale === 0 ? 0 : 1;

function read(url) {
  try {
    return readFileSync(url, "utf8");
  } catch {
    return undefined;
  }
}
