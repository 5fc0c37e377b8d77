import typia from "typia";

/** Question and answer as the message of a continuation quotes them. Contract section 6, last paragraph. */
export interface Answered {
  readonly requestId: string;
  readonly question: {
    readonly kind: "choice" | "text";
    readonly prompt: string;
    readonly options: readonly { readonly label: string; readonly description?: string }[];
  };
  readonly answer:
    | { readonly kind: "choice"; readonly label: string }
    | { readonly kind: "text"; readonly text: string };
}

const FIRST_LINE = "The owner answered the question you asked.";

const checkAnswered = typia.createValidateEquals<Answered>();

/** What the owner answered, when the message is that of a continuation; every string in it is data. */
export function answeredIn(message: string): Answered | undefined {
  const lines = message.trim().split("\n");
  if (lines.length < 2 || lines[0] !== FIRST_LINE) return undefined;
  try {
    const checked = checkAnswered(JSON.parse(lines.at(-1) ?? ""));
    return checked.success ? checked.data : undefined;
  } catch {
    return undefined;
  }
}
