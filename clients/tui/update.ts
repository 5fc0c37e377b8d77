import type { ConversationEvent } from "../../protocol/events.js";
import type { Answer, Question, QuestionResult } from "../../protocol/question.js";
import type { RefusalReason } from "../../protocol/refusals.js";
import type { ConversationSnapshot, Inbox } from "../../protocol/snapshot.js";
import { recoveredAnswer, recoveredCancel } from "../link/outcome.js";
import { type CompletionContext, candidates, complete, type Intent, isQuestionDraft, parse } from "./commands.js";
import * as edit from "./input.js";
import {
  type Attempt,
  type Begun,
  type Card,
  type Command,
  cardKey,
  type Event,
  type Notice,
  type OpenConversation,
  type ReadOutcome,
  type Responded,
  rowsOf,
  type Sent,
  type State,
  selectedOf,
  shownCard,
  waitingHere,
} from "./state.js";
import { eventLines, listSpan, measure } from "./view.js";
import { answerWords, continuationWords, receiptWords, refusalWords, whoWords } from "./words.js";

export interface Step {
  readonly state: State;
  readonly commands: readonly Command[];
}

/** What was typed this soon after a question was painted, in milliseconds, was on its way before it could be read. */
export const GRACE_MS = 120;
/** An Enter this soon after composed text, in milliseconds, ended the composition; a hand takes longer. */
export const COMPOSITION_MS = 40;
const READING = "Reading the question…";
const LIST_MS = 15_000;
const EVENTS_KEPT = 2_000;

const step = (state: State, ...commands: readonly Command[]): Step => ({ state, commands });
const say = (state: State, tone: "plain" | "good" | "warn" | "bad", text: string): State => ({
  ...state,
  notice: { tone, text },
});

/** What the terminal is after an event, and what is to be done about it. Pure. */
export function update(before: State, event: Event): Step {
  const state: State = { ...before, now: event.at };
  switch (event.type) {
    case "key":
      return key(state, event.name);
    case "text":
      return step(
        typed({ ...state, composedAt: /^[\x20-\x7e]*$/.test(event.text) ? state.composedAt : event.at }, event.text),
      );
    case "paste":
      return step(pasted(state, event.text));
    case "resize":
      return step(clamped({ ...state, columns: event.columns, rows: event.rows }));
    case "tick":
      return tick(state);
    case "painted":
      return step(painted(state, event.cardKey));
    case "link":
      return linkChanged(state, before, event.connection);
    case "principal":
      return step({ ...state, principal: event.principal });
    case "conversations":
      return listed(state, event.conversations);
    case "inbox":
      return inboxChanged(state, event.inbox);
    case "snapshot":
      return isOpen(state, event.conversationId) ? snapshotChanged(state, event.snapshot) : step(state);
    case "history":
      return step(
        withOpen(state, event.conversationId, (open) => ({
          ...open,
          loaded: true,
          events: event.events,
          gap: event.gap,
        })),
      );
    case "event":
      return step(eventCame(state, event.conversationId, event.event));
    case "questionSeen":
      return step(event.question.status === "pending" ? state : resolved(state, event.question));
    case "gap":
      return step(withOpen(state, event.conversationId, (open) => ({ ...open, gap: true })));
    case "openFailed":
      return step(withOpen(state, event.conversationId, (open) => ({ ...open, loaded: true, failed: event.say })));
    case "created":
      return created(state, event.conversation);
    case "failed":
      return step(say(state, "bad", event.say));
    case "sent":
      return step(messageSent(state, event.text, event.outcome));
    case "questionRead":
      return questionRead(state, event);
    case "responded":
      return responded(state, event.requestId, event.outcome);
    case "receiptRead":
      return receiptRead(state, event.requestId, event.outcome);
    default:
      return event satisfies never;
  }
}

// ---- typing

const keyOf = (state: State): string | null => (state.card === null || state.card.hidden ? null : cardKey(state.card));

function withEditor(state: State, editor: edit.Editor): State {
  if (editor.text === "") return { ...state, editor, begun: null };
  const begun = state.begun ?? { at: state.now, cardKey: keyOf(state), restored: false };
  return { ...state, editor, begun };
}

const typed = (state: State, text: string): State => withEditor(state, edit.insert(state.editor, text));

function pasted(state: State, text: string): State {
  const editor = edit.insert(state.editor, text);
  const next = withEditor(state, editor);
  const whole = edit.cleaned(text).length;
  return editor.text.length - state.editor.text.length < whole
    ? say(next, "warn", `The paste was cut: an input holds ${edit.INPUT_LIMIT} characters.`)
    : next;
}

const emptied = (state: State): State => ({ ...state, editor: edit.EMPTY, begun: null });

/** Empties the input and keeps its text one step up in the history. */
const shelved = (state: State): State =>
  state.editor.text.trim() === ""
    ? emptied(state)
    : emptied({ ...state, history: edit.remember(state.history, state.editor.text) });

function key(state: State, name: string): Step {
  const { editor } = state;
  switch (name) {
    case "ENTER":
    case "KP_ENTER":
      return enter(state);
    case "ALT_ENTER":
    case "CTRL_J":
      return step(typed(state, "\n"));
    case "TAB":
      return step(tab(state));
    case "ESCAPE":
      return step(hideOrLeave(state));
    case "CTRL_C":
      if (editor.text === "") return step(state, { type: "quit" });
      return step(
        say(shelved(state), "plain", "Put aside (↑ brings it back). Ctrl-C again leaves; nothing is cancelled."),
      );
    case "CTRL_D":
      return editor.text === "" ? step(state, { type: "quit" }) : step(withEditor(state, edit.remove(editor)));
    case "CTRL_L":
      return step(state, { type: "redraw" });
    case "UP":
      return step(vertical(state, -1));
    case "DOWN":
      return step(vertical(state, 1));
    case "PAGE_UP":
      return step(page(state, -1));
    case "PAGE_DOWN":
      return step(page(state, 1));
    case "LEFT":
      return step(withEditor(state, edit.left(editor)));
    case "RIGHT":
      return step(withEditor(state, edit.right(editor)));
    case "CTRL_LEFT":
    case "ALT_LEFT":
    case "ALT_B":
      return step(withEditor(state, edit.wordLeft(editor)));
    case "CTRL_RIGHT":
    case "ALT_RIGHT":
    case "ALT_F":
      return step(withEditor(state, edit.wordRight(editor)));
    case "HOME":
    case "CTRL_A":
      return step(withEditor(state, edit.lineStart(editor)));
    case "END":
    case "CTRL_E":
      return step(withEditor(state, edit.lineEnd(editor)));
    case "BACKSPACE":
    case "CTRL_H":
      return step(withEditor(state, edit.backspace(editor)));
    case "DELETE":
      return step(withEditor(state, edit.remove(editor)));
    case "CTRL_W":
    case "ALT_BACKSPACE":
      return step(withEditor(state, edit.removeWord(editor)));
    case "CTRL_U":
      return step(withEditor(state, edit.removeToStart(editor)));
    case "CTRL_K":
      return step(withEditor(state, edit.removeToEnd(editor)));
    default:
      return step(state); // a key that means nothing here
  }
}

function completionContext(state: State): CompletionContext {
  return {
    options: keyOf(state) === null ? 0 : (state.card?.question.options.length ?? 0),
    conversations: rowsOf(state).map(({ number, title }) => ({ number, title })),
  };
}

function tab(state: State): State {
  const { text, cursor } = state.editor;
  if (cursor !== text.length) return state;
  if (text === "") return withEditor(state, { text: "/", cursor: 1 });
  const whole = complete(text, completionContext(state));
  if (whole !== text) return withEditor(state, { text: whole, cursor: whole.length });
  return candidates(text, completionContext(state)).length > 0 || text.startsWith("/")
    ? state
    : say(state, "plain", "Tab completes commands: they begin with /");
}

/** Escape hides or leaves. It never cancels and never throws text away. */
function hideOrLeave(state: State): State {
  if (state.pane !== "conversation" && state.open !== null) return { ...state, pane: "conversation", scroll: 0 };
  if (state.card !== null && !state.card.hidden) {
    const drafting = isQuestionDraft(state.editor.text);
    return say(
      { ...(drafting ? stashed(state, state.card.target.requestId) : state), card: { ...state.card, hidden: true } },
      "plain",
      state.card.question.status === "pending"
        ? "Hidden, and still waiting. /question shows it again; only /question cancel cancels it."
        : "Hidden.",
    );
  }
  return { ...state, notice: null };
}

/** Puts an unsent answer away under the question it was written for. */
function stashed(state: State, requestId: string): State {
  const { text } = state.editor;
  return emptied({
    ...state,
    drafts: { ...state.drafts, [requestId]: text },
    history: edit.remember(state.history, text),
  });
}

function vertical(state: State, direction: -1 | 1): State {
  const { editor } = state;
  if (editor.text === "" && state.pane === "list") return chosen(state, direction);
  const moved = edit.vertical(editor, direction);
  if (moved !== null) return withEditor(state, moved);
  const recalled = edit.recall(state.history, editor.text, direction);
  if (recalled === null) return state;
  // a recalled line begins anew: it belongs to the card that is on screen now
  return withEditor({ ...state, history: recalled.history, begun: null }, recalled.editor);
}

function chosen(state: State, direction: -1 | 1): State {
  const rows = rowsOf(state);
  const selected = selectedOf(state);
  const at = rows.findIndex(({ conversationId }) => conversationId === selected);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + direction))];
  if (next === undefined) return state;
  const moved = { ...state, selected: next.conversationId };
  const { from, to } = listSpan(moved);
  const room = Math.max(1, measure(moved).mainShown - 1); // the last line may say that there is more
  return clamped({ ...moved, scroll: Math.max(Math.min(moved.scroll, from), to - room) });
}

/** Pages the question while one is on screen that does not fit, else the page behind it. */
function page(state: State, direction: -1 | 1): State {
  const { card } = state;
  const sizes = measure(state);
  if (state.pane === "conversation" && card !== null && !card.hidden && sizes.cardHidden > 0) {
    const scroll = Math.min(sizes.cardHidden, Math.max(0, card.scroll + direction * Math.max(1, sizes.cardShown - 1)));
    return { ...state, card: { ...card, scroll } };
  }
  const backwards = state.pane === "conversation" ? -direction : direction;
  return clamped({ ...state, scroll: state.scroll + backwards * Math.max(1, sizes.mainShown - 1) });
}

function clamped(state: State): State {
  const sizes = measure(state);
  const scroll = Math.min(sizes.mainHidden, Math.max(0, state.scroll));
  const card = state.card === null ? null : { ...state.card, scroll: Math.min(sizes.cardHidden, state.card.scroll) };
  return { ...state, scroll, card };
}

// ---- submitting

function enter(state: State): Step {
  if (state.now - state.composedAt < COMPOSITION_MS && state.editor.text !== "") {
    return step(say(state, "plain", "That Enter came with composed text, so nothing was sent. Enter sends."));
  }
  if (state.editor.text.trim() === "") {
    const selected = selectedOf(state);
    if (state.editor.text === "" && state.pane === "list" && selected !== null) return open(state, selected);
    return step(emptied(state));
  }
  // a submitted line leaves the input, whatever comes of it, and stays one step up in the history
  return submit({ ...shelved(state), notice: null }, state, parse(state.editor.text));
}

/** `state` is after the line left the input, `before` is when it was submitted. */
function submit(state: State, before: State, intent: Intent): Step {
  switch (intent.kind) {
    case "invalid":
      return step(say(state, "warn", intent.say));
    case "help":
      return step({ ...state, pane: "help", scroll: 0 });
    case "quit":
      return step(state, { type: "quit" });
    case "message":
      return sendMessage(state, intent.text);
    case "open":
      return openWhich(state, intent.which);
    case "new":
      return step(say(state, "plain", "Starting a conversation…"), {
        type: "create",
        directory: intent.directory,
        command: intent.command,
      });
    case "question":
      if (intent.action === "list") return step({ ...state, pane: "waiting", scroll: 0 });
      return intent.action === "cancel" ? act(state, before, null) : readQuestion(state);
    case "answer": {
      const card = shownCard(state);
      const option = card?.question.options[intent.option - 1];
      if (card !== null && option === undefined) {
        const count = card.question.options.length;
        const has = count === 0 ? "It has no options: /question text YOUR WORDS" : `It has options 1 to ${count}.`;
        return step(
          say(state, "warn", `The question on screen has no option ${intent.option}; nothing was sent. ${has}`),
        );
      }
      return act(state, before, { kind: "choice", optionId: option?.optionId ?? "" });
    }
    case "answerMissing": {
      const how =
        shownCard(state) === null
          ? "No question is on screen: /question reads it, then /question text YOUR WORDS."
          : "Write your answer behind it: /question text YOUR WORDS";
      return step(say(state, "warn", how));
    }
    case "answerText":
      return act(state, before, { kind: "text", text: intent.text });
    default:
      return intent satisfies never;
  }
}

/** Answers or cancels (null) the displayed question at the displayed revision: that one, or none. */
function act(state: State, before: State, answer: Answer | null): Step {
  const none = (words: string): Step => step(say(state, "warn", `${words} ↑ brings back what you typed.`));
  const card = shownCard(state);
  if (card === null) return none("No question is on screen, so nothing was sent: /question reads it, then answer.");
  const { requestId } = card.target;
  if (card.stale) {
    const drafts = { ...state.drafts, [requestId]: before.editor.text };
    const why = "Nothing was sent: the question has not been read again since the connection was lost.";
    return step(say({ ...state, drafts }, "warn", `${why} Your text comes back with it.`));
  }
  const underway = state.attempts[requestId];
  if (underway !== undefined) {
    const words =
      underway.phase === "sending" ? "is on its way" : "has an uncertain outcome; its receipt is being read";
    return none(`Nothing was sent: your earlier ${attemptWords(underway)} ${words}.`);
  }
  const { begun } = before;
  if (begun === null || !isDeliberate(begun, card, state.now)) {
    const why =
      begun?.cardKey === cardKey(card) || begun?.cardKey === null
        ? "you began to type before the question was on screen"
        : "the question was read again after you began to type";
    return none(`Nothing was sent: ${why}. Look at it;`);
  }
  const attempt: Attempt = { target: card.target, answer, wrote: before.editor.text, phase: "sending" };
  const { [requestId]: _draft, ...drafts } = state.drafts;
  const next: State = {
    ...state,
    attempts: { ...state.attempts, [requestId]: attempt },
    drafts,
    notice: { tone: "plain", text: answer === null ? "Cancelling…" : "Sending your answer…" },
  };
  return step(
    next,
    answer === null ? { type: "cancelQuestion", target: card.target } : { type: "answer", target: card.target, answer },
  );
}

/** Typed for the card that is on screen after it had been there for a moment; or brought back, and looked at since. */
function isDeliberate(begun: Begun, card: Card, now: number): boolean {
  if (card.paintedAt === null || begun.cardKey !== cardKey(card)) return false;
  return (begun.restored ? now : begun.at) >= card.paintedAt + GRACE_MS;
}

const attemptWords = ({ answer }: Attempt): string => (answer === null ? "cancellation" : "answer");

function sendMessage(state: State, text: string): Step {
  const { open: here } = state;
  if (here === null || state.pane === "list") {
    return step(
      say(state, "warn", "Open a conversation first: choose with ↑ ↓ and Enter on an empty line, or /open N."),
    );
  }
  return step(say({ ...state, pane: "conversation", scroll: 0 }, "plain", "Sending…"), {
    type: "send",
    conversationId: here.conversationId,
    text,
  });
}

function messageSent(state: State, text: string, outcome: Sent): State {
  if (outcome.kind === "accepted") return messageAccepted(state);
  const kept = { ...state, history: edit.remember(state.history, text) };
  switch (outcome.kind) {
    case "refused":
      return say(kept, "bad", `Your message was not accepted: ${outcome.say}. ↑ brings it back.`);
    case "not_sent":
      return say(kept, "bad", `Your message was not sent: ${outcome.say}. ↑ brings it back.`);
    case "uncertain":
      return say(
        kept,
        "warn",
        "The connection went before the reply: whether your message arrived shows above. It is not sent again; ↑ brings it back.",
      );
    default:
      return outcome satisfies never;
  }
}

/** Whoever wrote "yes" while a question waits may take it for answered: it is said that it is not. */
function messageAccepted(state: State): State {
  const sent = "Sent: the service accepted your message.";
  const waiting = waitingHere(state);
  if (waiting === null) return say(state, "good", sent);
  const way = waiting.options.length === 0 ? "/question text WORDS" : "/question answer N";
  // a narrow screen has no room for both, and the way to answer must not be what is cut
  const first = state.columns < 60 ? "Sent." : sent;
  return say(state, "warn", `${first} This is a message and did not answer the question: /question, then ${way}.`);
}

function readQuestion(state: State): Step {
  const { open: here } = state;
  if (here === null) return step({ ...state, pane: "waiting", scroll: 0 });
  const sequence = state.sequence + 1;
  return step(
    {
      ...state,
      pane: "conversation",
      sequence,
      reading: sequence,
      notice: { tone: "plain", text: READING },
    },
    { type: "readQuestion", conversationId: here.conversationId, sequence },
  );
}

// ---- conversations

const isOpen = (state: State, conversationId: string): boolean => state.open?.conversationId === conversationId;

function withOpen(state: State, conversationId: string, change: (open: OpenConversation) => OpenConversation): State {
  return state.open === null || state.open.conversationId !== conversationId
    ? state
    : { ...state, open: change(state.open) };
}

function openWhich(state: State, which: string): Step {
  if (which === "") return step({ ...state, pane: "list", scroll: 0 }, { type: "list" });
  const found = findConversation(state, which);
  if (found.kind === "one") return open(state, found.conversationId);
  return step(say({ ...state, pane: state.open === null ? "list" : state.pane }, "warn", found.say));
}

type Found =
  | { readonly kind: "one"; readonly conversationId: string }
  | { readonly kind: "none"; readonly say: string };

function findConversation(state: State, which: string): Found {
  const rows = rowsOf(state);
  const one = (conversationId: string): Found => ({ kind: "one", conversationId });
  const exact = rows.find(({ conversationId }) => conversationId === which);
  if (exact !== undefined) return one(exact.conversationId);
  const numbered = /^\d+$/.test(which) ? rows.find(({ number }) => number === Number(which)) : undefined;
  if (numbered !== undefined) return one(numbered.conversationId);
  const wanted = which.toLowerCase();
  const titled = rows.filter(({ title }) => title.toLowerCase() === wanted);
  const near = rows.filter(
    ({ title, conversationId }) => title.toLowerCase().includes(wanted) || conversationId.startsWith(which),
  );
  const [only, another] = titled.length > 0 ? titled : near;
  if (only !== undefined && another === undefined) return one(only.conversationId);
  return {
    kind: "none",
    say:
      only === undefined
        ? `No conversation is “${which}”. /open shows them all.`
        : `More than one conversation is “${which}”: take its number. /open shows them.`,
  };
}

function open(state: State, conversationId: string): Step {
  const fresh: OpenConversation = {
    conversationId,
    snapshot: null,
    events: [],
    gap: false,
    loaded: false,
    failed: null,
  };
  const next: State = {
    ...withoutCard(state),
    open: fresh,
    wanted: null,
    selected: conversationId,
    pane: "conversation",
    scroll: 0,
    reading: null,
    notice: null,
  };
  return step(next, { type: "open", conversationId });
}

/** The displayed question is forgotten; an answer being typed for it stays with it. */
function withoutCard(state: State): State {
  const { card, editor, begun } = state;
  if (card === null) return state;
  const draft = isQuestionDraft(editor.text) && begun !== null && begun.cardKey !== null;
  return { ...(draft ? stashed(state, card.target.requestId) : state), card: null };
}

function listed(state: State, conversations: readonly ConversationSnapshot[]): Step {
  const ids = conversations.map(({ conversationId }) => conversationId);
  const next = numbered({ ...state, conversations, listedAt: state.now }, ids);
  if (next.open !== null) return step(next);
  if (next.wanted !== null) {
    const found = findConversation(next, next.wanted);
    if (found.kind === "one") return open(next, found.conversationId);
    return step(say({ ...next, wanted: null }, "warn", found.say));
  }
  const [only, another] = rowsOf(next);
  return state.conversations === null && only !== undefined && another === undefined
    ? open(next, only.conversationId)
    : step(next);
}

function numbered(state: State, ids: readonly string[]): State {
  const fresh = ids.filter((id) => state.numbers[id] === undefined);
  const taken = Object.keys(state.numbers).length;
  const added = fresh.map((id, index) => [id, taken + index + 1] as const);
  return added.length === 0 ? state : { ...state, numbers: { ...state.numbers, ...Object.fromEntries(added) } };
}

function inboxChanged(state: State, inbox: Inbox | null): Step {
  if (inbox === null) return step({ ...state, inbox });
  const ids = Object.keys(inbox);
  const fresh = state.announced === null ? [] : ids.filter((id) => !state.announced?.includes(id));
  const known = new Set((state.conversations ?? []).map(({ conversationId }) => conversationId));
  const strange = Object.values(inbox).some(({ conversationId }) => !known.has(conversationId));
  const announced = [...(state.announced ?? []).filter((id) => !ids.includes(id)), ...ids].slice(-500);
  const next = numbered(
    { ...state, inbox, announced },
    Object.values(inbox).map(({ conversationId }) => conversationId),
  );
  const commands: Command[] = [];
  if (fresh.length > 0 && state.bell) commands.push({ type: "bell" });
  if (strange && state.conversations !== null) commands.push({ type: "list" });
  return step(next, ...commands);
}

function created(state: State, conversation: ConversationSnapshot): Step {
  const conversations = [
    ...(state.conversations ?? []).filter(({ conversationId }) => conversationId !== conversation.conversationId),
    conversation,
  ];
  return open(numbered({ ...state, conversations }, [conversation.conversationId]), conversation.conversationId);
}

function tick(state: State): Step {
  const seesList = state.pane === "list" || state.columns >= 100;
  if (state.connection.kind !== "connected" || !seesList || state.now - state.listedAt < LIST_MS) return step(state);
  return step({ ...state, listedAt: state.now }, { type: "list" });
}

function linkChanged(state: State, before: State, connection: State["connection"]): Step {
  if (connection.kind === "connected") {
    return step({ ...state, connection }, { type: "whoami" }, { type: "list" });
  }
  const lost = before.connection.kind === "connected";
  const card = state.card === null || !lost ? state.card : { ...state.card, stale: true };
  return step({ ...state, connection, card, reading: lost ? null : state.reading });
}

function snapshotChanged(state: State, snapshot: ConversationSnapshot | null): Step {
  if (state.open === null) return step(state);
  const next = noticeFollowing({ ...state, open: { ...state.open, snapshot } }, snapshot);
  if (snapshot === null || next.card === null) return step(next);
  const { card } = next;
  const { requestId, incarnationId, conversationId } = card.target;
  if (card.stale) {
    // nothing from before the connection was lost counts until it has been read again
    const sequence = state.sequence + 1;
    return step(
      { ...next, sequence, reading: sequence },
      { type: "readQuestion", conversationId, requestId, sequence },
    );
  }
  if (snapshot.incarnationId !== incarnationId && snapshot.revision > card.target.expectedRevision) {
    return step(say(withoutCard(next), "warn", "The conversation was reset: the question on screen is gone."));
  }
  const receipt = snapshot.receipts[requestId];
  return step(receipt === undefined ? next : resolved(next, receipt));
}

/** What the notice says of a receipt is what the snapshot says of it. */
function noticeFollowing(state: State, snapshot: ConversationSnapshot | null): State {
  const requestId = state.notice?.receiptOf;
  const receipt = requestId === undefined ? undefined : snapshot?.receipts[requestId];
  return receipt === undefined ? state : { ...state, notice: storedNotice(receipt) };
}

/** A continuation only ever goes from accepted to an end: a reply that comes late takes none back. */
function latest(state: State, receipt: Question): Question {
  const { requestId, continuation } = receipt;
  const seen = state.open?.snapshot?.receipts[requestId];
  const ended = seen?.continuation !== undefined && seen.continuation.state !== "accepted";
  return ended && continuation?.state === "accepted" ? seen : receipt;
}

/** The displayed question has a receipt: it changes on screen at once and says who. */
function resolved(state: State, received: Question): State {
  const { card } = state;
  if (card === null || card.target.requestId !== received.requestId) return state;
  const receipt = latest(state, received);
  const scroll = card.question.status === "pending" ? 0 : card.scroll;
  const next: State = { ...state, card: { ...card, question: receipt, scroll } };
  if (card.question.status !== "pending" || state.attempts[receipt.requestId] !== undefined) return next;
  return say(next, "warn", `Resolved elsewhere: ${receiptWords(receipt)}.`);
}

function eventCame(state: State, conversationId: string, event: ConversationEvent): State {
  if (!isOpen(state, conversationId)) return state;
  const next = withOpen(state, conversationId, (opened) => ({
    ...opened,
    events: [...opened.events, event].slice(-EVENTS_KEPT),
  }));
  // whoever reads further up stays where they read
  return state.scroll === 0 || state.pane !== "conversation"
    ? next
    : clamped({ ...next, scroll: state.scroll + eventLines(next, event).length });
}

// ---- questions

function questionRead(
  state: State,
  event: { readonly conversationId: string; readonly sequence: number; readonly outcome: ReadOutcome },
): Step {
  if (!isOpen(state, event.conversationId) || state.reading !== event.sequence) return step(state);
  // a read that nobody typed takes no notice away: it may be the one that says what became of an answer
  const notice = state.notice?.text === READING ? null : state.notice;
  const next: State = { ...state, reading: null, notice };
  if (event.outcome.kind === "failed") {
    return step(say(next, "bad", `The question could not be read: ${event.outcome.say}.`));
  }
  return step(display(next, event.outcome.result));
}

function display(state: State, result: QuestionResult): State {
  const { incarnationId, revision } = result;
  const question = result.question && latest(state, result.question);
  if (question === undefined || incarnationId === undefined || revision === undefined) {
    const gone = withoutCard(state);
    if (result.status === "refused")
      return say(gone, "bad", `The question cannot be shown: ${refusalWords(result.reason)}.`);
    return state.card?.stale === true
      ? say(gone, "warn", "The question that was on screen is no longer known to the service.")
      : say(gone, "plain", "No question waits in this conversation.");
  }
  const target = {
    conversationId: result.conversationId,
    incarnationId: question.incarnationId,
    requestId: question.requestId,
    expectedRevision: revision,
  };
  const shown = state.card;
  const same = shown !== null && shown.target.requestId === target.requestId;
  const unmoved = same && shown.target.expectedRevision === revision && !shown.hidden;
  const card: Card = {
    target,
    question,
    paintedAt: unmoved ? shown.paintedAt : null,
    hidden: shown?.stale === true && shown.hidden,
    stale: false,
    scroll: same ? shown.scroll : 0,
  };
  return restored(clamped({ ...(same ? state : withoutCard(state)), card }));
}

/** An answer that was begun for this question comes back with it, into an empty input only. */
function restored(state: State): State {
  const { card } = state;
  const requestId = card?.target.requestId ?? "";
  const draft = state.drafts[requestId];
  if (draft === undefined || state.editor.text !== "" || card?.question.status !== "pending" || card.hidden)
    return state;
  const { [requestId]: _taken, ...drafts } = state.drafts;
  const begun = { at: state.now, cardKey: cardKey(card), restored: true };
  return say(
    { ...state, drafts, editor: { text: draft, cursor: draft.length }, begun },
    "plain",
    "Your unsent answer to this question is back in the input.",
  );
}

function painted(state: State, key: string | null): State {
  const { card } = state;
  if (card === null || key !== cardKey(card) || card.paintedAt !== null) return state;
  return { ...state, card: { ...card, paintedAt: state.now } };
}

const settledAttempt = (state: State, requestId: string): State => {
  const { [requestId]: _done, ...attempts } = state.attempts;
  return { ...state, attempts };
};

/** Nothing was stored: the text that was written stays within reach. */
function notStored(state: State, attempt: Attempt): State {
  return {
    ...state,
    history: edit.remember(state.history, attempt.wrote),
    kept: { ...state.kept, [attempt.target.requestId]: attempt.wrote },
  };
}

function responded(state: State, requestId: string, outcome: Responded): Step {
  const attempt = state.attempts[requestId];
  if (attempt === undefined) return step(state);
  switch (outcome.kind) {
    case "settled":
      return answered(settledAttempt(state, requestId), attempt, outcome.result);
    case "fault":
      return step(
        say(
          notStored(settledAttempt(state, requestId), attempt),
          "bad",
          `Nothing was stored: ${outcome.say}. ↑ brings back what you typed.`,
        ),
        { type: "whoami" },
      );
    case "not_sent":
      return step(
        say(
          notStored(settledAttempt(state, requestId), attempt),
          "bad",
          `Nothing was sent: ${outcome.say}. ↑ brings back what you typed.`,
        ),
      );
    case "uncertain":
      return step(
        say(
          { ...state, attempts: { ...state.attempts, [requestId]: { ...attempt, phase: "uncertain" } } },
          "warn",
          `Uncertain: the connection went before the reply, so your ${attemptWords(attempt)} may or may not be stored. It is not sent again; its receipt is read once the connection is back.`,
        ),
      );
    default:
      return outcome satisfies never;
  }
}

function answered(state: State, attempt: Attempt, result: QuestionResult): Step {
  switch (result.status) {
    case "resolved": {
      if (result.question === undefined) return step(say(state, "bad", "The service sent no receipt."));
      return step(stored(state, attempt, result.question));
    }
    case "revision_conflict": {
      const at =
        result.revision === undefined ? "" : ` (revision ${attempt.target.expectedRevision}, now ${result.revision})`;
      return step(
        say(
          notStored(isDisplayed(state, attempt) ? withoutCard(state) : state, attempt),
          "warn",
          `The conversation changed since you read the question${at}. Nothing was stored: read it again with /question. ↑ brings back what you typed.`,
        ),
      );
    }
    case "refused":
      return refused(state, attempt, result);
    case "ready":
      return step(
        say(
          notStored(state, attempt),
          "bad",
          "The service did not say what became of it: read it again with /question.",
        ),
      );
    default:
      return result.status satisfies never;
  }
}

const isDisplayed = ({ card }: State, { target }: Attempt): boolean => card?.target.requestId === target.requestId;

/** "Stored" is said with the receipt in hand, and only then. */
function stored(state: State, attempt: Attempt, receipt: Question): State {
  const next = resolved({ ...state, attempts: { ...state.attempts, [receipt.requestId]: attempt } }, receipt);
  const done = settledAttempt(next, receipt.requestId);
  const { [receipt.requestId]: _kept, ...kept } = done.kept;
  const clean = { ...done, kept };
  if (receipt.status === "cancelled") return say(clean, "good", `Cancelled: ${receiptWords(receipt)}.`);
  return { ...clean, notice: storedNotice(latest(clean, receipt)) };
}

function storedNotice(receipt: Question): Notice {
  const { continuation, requestId } = receipt;
  const then = continuation === undefined ? "" : ` — ${continuationWords(continuation, 8)}`;
  const lost = continuation?.state === "failed" || continuation?.state === "cancelled";
  return {
    tone: lost ? "warn" : "good",
    text: `Sent and stored: ${answerWords(receipt)}, by ${whoWords(receipt.resolvedBy)}${then}.`,
    receiptOf: requestId,
  };
}

function refused(state: State, attempt: Attempt, result: QuestionResult): Step {
  const kept = notStored(state, attempt);
  const why = refusalWords(result.reason);
  if (result.question !== undefined && result.question.status !== "pending") {
    const silent = resolved(
      { ...kept, attempts: { ...kept.attempts, [attempt.target.requestId]: attempt } },
      result.question,
    );
    return step(
      say(
        settledAttempt(silent, attempt.target.requestId),
        "warn",
        `Not stored: ${why}: ${receiptWords(result.question)}. Your text is kept: ↑ brings it back.`,
      ),
    );
  }
  const gone = result.reason === "stale_request" || result.reason === "unknown_request";
  const next = gone && isDisplayed(kept, attempt) ? withoutCard(kept) : kept;
  return step(say(next, "warn", `Not stored: ${why}. ↑ brings back what you typed.`), { type: "whoami" });
}

/** The receipt of an uncertain attempt: now it is known what became of it. */
function receiptRead(state: State, requestId: string, outcome: ReadOutcome): Step {
  const attempt = state.attempts[requestId];
  if (attempt === undefined || attempt.phase !== "uncertain") return step(state);
  const known = settledAttempt(state, requestId);
  if (outcome.kind === "failed") {
    return step(
      say(notStored(known, attempt), "warn", `Still uncertain: the receipt could not be read (${outcome.say}).`),
    );
  }
  const { result } = outcome;
  const { answer } = attempt;
  const found = answer === null ? recoveredCancel(result) : recoveredAnswer(result, answer);
  switch (found) {
    case "stored":
      return step(result.question === undefined ? known : stored(known, attempt, result.question));
    case "pending":
      return step(
        say(
          notStored(known, attempt),
          "warn",
          `Your ${attemptWords(attempt)} is not stored so far: the question still waits. Read it again with /question; ↑ brings back what you typed.`,
        ),
      );
    case "otherwise":
      return refused(known, attempt, { ...result, reason: otherwiseReason(result.question, answer) });
    case "unknown":
      return step(
        say(notStored(known, attempt), "warn", "Still uncertain: the service no longer knows this question."),
      );
    default:
      return found satisfies never;
  }
}

function otherwiseReason(receipt: Question | undefined, answer: Answer | null): RefusalReason {
  if (receipt?.status === "cancelled") return "question_cancelled";
  return answer === null ? "already_submitted" : "answer_conflict";
}
