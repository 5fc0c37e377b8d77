import type { ChoiceDraft, OptionDraft } from "../../../protocol/question.js";
import type { Answered } from "./continuation.js";
import { describe, describeAll, filesAndFolders } from "./describe.js";
import { sizeInWords } from "./kinds.js";
import { type Entry, type FileEntry, type Found, filesOf } from "./look.js";

const WHOLE = "The directory as a whole";
const MOST_OFFERED = 7;

/** The question that an empty directory gives rise to. */
const EMPTY: ChoiceDraft = {
  kind: "choice",
  prompt: "There is nothing here yet that is not hidden. What is this directory going to hold?",
  options: [
    { label: "A program", description: "I say which files a program of any language begins with" },
    { label: "Texts", description: "I say how notes or a manual can be laid out" },
    { label: "Data", description: "I say what to write down beside data" },
  ],
  allowFreeform: true,
};

const BEGINNINGS: Readonly<Record<string, readonly string[]>> = {
  "A program": [
    "A program begins with a README that says what it is for, the manifest of its language (package.json, Cargo.toml,",
    "go.mod, pyproject.toml), one source file that runs, one test, and a .gitignore.",
  ],
  Texts: [
    "Texts begin well with an index (README.md or index.md), one file a subject, dates in the names of what is dated,",
    "and a folder for pictures.",
  ],
  Data: [
    "Beside data, write down where it came from and when, what each column means and in which unit, and what may be",
    "done with it; keep what was received apart from what was made of it.",
  ],
};

/** The question made from what was found. */
export function questionAbout(found: Found): ChoiceDraft {
  const offered = offeredFrom(found);
  if (offered.length === 0) return EMPTY;
  return {
    kind: "choice",
    prompt: offered.length === 1 ? "What shall I describe?" : "Which of these shall I describe first?",
    options: [...offered.map(optionFor), { label: WHOLE, description: inAll(found) }],
    allowFreeform: true,
  };
}

/** What is done with an answer: lines for a person. */
export async function reactTo(
  workspace: string,
  found: Found,
  { question, answer }: Answered,
): Promise<readonly string[]> {
  switch (answer.kind) {
    case "choice":
      return chosen(workspace, found, answer.label);
    case "text":
      return understood(workspace, found, question.options, answer.text.trim());
    default:
      return answer satisfies never;
  }
}

async function chosen(workspace: string, found: Found, label: string): Promise<readonly string[]> {
  if (label === WHOLE) return describeAll(found);
  const beginning = Object.hasOwn(BEGINNINGS, label) ? BEGINNINGS[label] : undefined;
  const entry = found.entries.find((one) => labelOf(one) === label);
  if (entry !== undefined) return describe(workspace, found, entry);
  return beginning ?? [`“${label}” was chosen, but it is not here any more.`, ...describeAll(found)];
}

/** A free text names something that was found, or the number of an option, or nothing that this agent knows. */
async function understood(
  workspace: string,
  found: Found,
  options: Answered["question"]["options"],
  text: string,
): Promise<readonly string[]> {
  const numbered = /^\d{1,2}$/.test(text) ? options[Number(text) - 1] : undefined;
  if (numbered !== undefined) return chosen(workspace, found, numbered.label);
  const named = namedIn(text, found);
  if (named.length > 0) return (await Promise.all(named.map((entry) => describe(workspace, found, entry)))).flat();
  if (/\b(all|everything|whole|overview|summary)\b/i.test(text)) return describeAll(found);
  return [
    `I understood: “${text.length > 200 ? `${[...text].slice(0, 200).join("")}…` : text}”.`,
    "That names nothing I found here, and I only know how to describe files and folders. What is here:",
    ...describeAll(found).slice(1),
  ];
}

const MOST_NAMED = 3;

/** The files and folders whose path, or else whose name, stands in a text as words of its own. */
function namedIn(text: string, { entries }: Found): readonly Entry[] {
  const words = new Set(
    text
      .toLowerCase()
      .split(/[\s,;"'`“”()]+/)
      .flatMap((word) => [word, word.replace(/^\.\//, "").replace(/[.!?:/]+$/, "")]),
  );
  const nameOf = ({ path }: Entry): string => path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const whole = entries.filter((entry) => entry.path.toLowerCase() === text.toLowerCase());
  const byPath = entries.filter(({ path }) => words.has(path.toLowerCase()));
  const byName = entries.filter((entry) => words.has(nameOf(entry)) || words.has(nameOf(entry).replace(/\.\w+$/, "")));
  return ([whole, byPath, byName].find(({ length }) => length > 0) ?? []).slice(0, MOST_NAMED);
}

const labelOf = (entry: Entry): string => (entry.type === "folder" ? `${entry.path}/` : entry.path);

function optionFor(entry: Entry): OptionDraft {
  const description =
    entry.type === "folder" ? "folder" : `${entry.kind}, ${sizeInWords(entry.bytes)}, changed ${dayOf(entry.changed)}`;
  return { label: labelOf(entry), description };
}

/** What is worth offering: what people open first, then what was changed last, then folders; only what fits a label. */
function offeredFrom(found: Found): readonly Entry[] {
  const files = filesOf(found)
    .filter(canBeLabel)
    .toSorted((one, other) => rank(one) - rank(other) || other.changed.getTime() - one.changed.getTime());
  const folders = found.entries.filter((entry) => entry.type === "folder").filter(canBeLabel);
  const labels = new Set([WHOLE]);
  const distinct = [...files.slice(0, MOST_OFFERED), ...folders].filter((entry) => {
    const label = labelOf(entry).normalize("NFC");
    return !labels.has(label) && labels.add(label);
  });
  return distinct.slice(0, MOST_OFFERED);
}

/** Contract section 3: 1–200 after trimming, no control characters, well-formed. What trimming would change is left out. */
function canBeLabel(entry: Entry): boolean {
  const label = labelOf(entry);
  return label.length <= 200 && label.trim() === label && !/[\p{Cc}\p{Cs}\ufffd]/u.test(label);
}

function rank({ path }: FileEntry): number {
  const depth = path.split("/").length - 1;
  if (depth === 0 && /^readme(\.|$)/i.test(path)) return 0;
  if (depth === 0 && /^(package\.json|cargo\.toml|go\.mod|pyproject\.toml|makefile)$/i.test(path)) return 1;
  const isDull = /(^|\/)(package-lock\.json|yarn\.lock|[^/]*\.lock|[^/]*\.log)$/i.test(path);
  return 2 + depth + (isDull ? 10 : 0);
}

const dayOf = (date: Date): string => date.toISOString().slice(0, 10);

export function inAll(found: Found): string {
  const files = filesOf(found).length;
  const all = filesAndFolders(files, found.entries.length - files);
  return found.complete ? all : `at least ${all}`;
}
