/**
 * Characters that act instead of being seen: controls but line feed and tab, DEL, C1, lone surrogates, line and paragraph
 * separators, everything Unicode gives no shape of its own (zero-width characters, bidi marks, overrides and isolates,
 * tags, fillers, variation selectors) and the other format characters but those that are drawn, such as U+06DD.
 */
const ACTING =
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\p{Cs}\\u2028\\u2029\\p{Default_Ignorable_Code_Point}\\ufff9-\\ufffb\\u{13430}-\\u{1343f}]";

/** Scripts whose ordinary spelling needs a joiner or a non-joiner between two letters. */
const JOINING = [
  ...["Arabic", "Syriac", "Mongolian", "Nko", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil"],
  ...["Telugu", "Kannada", "Malayalam", "Sinhala", "Khmer", "Myanmar"],
]
  .map((script) => `\\p{Script=${script}}`)
  .join("");

/** Where an unseen character is a part of what is seen. */
const KEPT = [
  // the text or emoji form of the sign before it
  "(?<=\\p{Emoji})[\\ufe0e\\ufe0f]",
  // a joiner between two pictures: a family, a profession
  "(?<=\\p{Extended_Pictographic}[\\u{1f3fb}-\\u{1f3ff}\\ufe0f]?)\\u200d(?=\\p{Extended_Pictographic})",
  // one joiner or non-joiner between two letters of a script that needs it
  `(?<=(?=[${JOINING}])[\\p{L}\\p{M}])[\\u200c\\u200d](?=[${JOINING}])(?=[\\p{L}\\p{M}])`,
  // the flags of England, Scotland and Wales; tags anywhere else can carry a hidden text
  "\\u{1f3f4}\\u{e0067}\\u{e0062}(?:\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0073}\\u{e0063}\\u{e0074}|\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}",
].join("|");

const FIND = new RegExp(`(${KEPT})|${ACTING}`, "gu");

const shown = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/**
 * Text from the service as it may be shown: it cannot move the cursor, clear the screen, set the title or hide text.
 * What would is shown as `\u{202e}`. Line feeds and tabs stay. Showing twice is showing once. Contract section 3.
 */
export function safeText(text: string): string {
  return text.replace(FIND, (character, kept: string | undefined) => kept ?? shown(character));
}

/** Like `safeText`, for a place of one line: line feeds and tabs are shown too. */
export function safeLine(text: string): string {
  return safeText(text).replace(/[\n\t]/g, shown);
}

/** A JSON document as it may be shown on a terminal: the same value, with such characters as JSON escapes. */
export function safeJson(json: string): string {
  return json.replace(FIND, (character, kept: string | undefined) => {
    if (kept !== undefined) return kept;
    return [...Array(character.length).keys()].map((at) => unit(character.charCodeAt(at))).join("");
  });
}

const unit = (code: number): string => `\\u${code.toString(16).padStart(4, "0")}`;
