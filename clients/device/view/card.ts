import type { Option, Question } from "../../../protocol/question.js";
import { isSameAnswer } from "../../link/outcome.js";
import { type Child, h, type Node } from "../html.js";
import {
  type Card,
  EMPTY_DRAFT,
  isOutdated,
  knownQuestion,
  liveSnapshot,
  type Paired,
  type Route,
  type State,
} from "../state.js";
import { answerOf, maySend } from "../update.js";
import { icon } from "./icon.js";
import {
  ago,
  answerWords,
  askerWords,
  cancelWords,
  clock,
  continuationWords,
  refusalWords,
  resolver,
  until,
} from "./words.js";

type View = Node;
type QuestionRoute = Extract<Route, { kind: "question" }>;

/** One question: what is asked, by whom, and either the way to answer it or its receipt. */
export function cardView(state: State, session: Paired, route: QuestionRoute): View {
  const { requestId, conversationId } = route;
  const card = session.cards[requestId];
  const question = knownQuestion(session, requestId);
  return h(
    "article",
    { key: `card ${requestId}`, class: "card", "aria-labelledby": "card-heading" },
    h("a", { key: "back", class: "back", href: "#/" }, icon("back"), "Waiting"),
    card === undefined || question === undefined
      ? unread(card, requestId)
      : h(
          "div",
          { key: "body", class: "card-body" },
          head(state, session, question),
          card.shown === undefined
            ? h("p", { key: "reading", class: "quiet", role: "status" }, unreadWords(card))
            : question.status === "pending"
              ? form(state, session, card, question)
              : receipt(state, session, card, question),
        ),
    (card === undefined || question === undefined) && conversationLink(conversationId),
  );
}

/** With the head, not below the form: there it would be behind what stays under the thumb. */
const conversationLink = (conversationId: string): View =>
  h(
    "p",
    { key: "more", class: "card-more" },
    h("a", { href: `#/conversation/${encodeURIComponent(conversationId)}` }, "Read the conversation"),
  );

function unread(card: Card | undefined, requestId: string): View {
  return h(
    "div",
    { key: "unread", class: "card-body" },
    h("h1", { id: "card-heading", tabindex: -1 }, "Question"),
    h("p", { class: "quiet" }, unreadWords(card)),
    card !== undefined &&
      (card.attempt.kind === "failed" || card.attempt.kind === "refused") &&
      h(
        "button",
        { class: "secondary", type: "button", on: { click: () => ({ type: "read_again_pressed", requestId }) } },
        "Read again",
      ),
  );
}

function unreadWords(card: Card | undefined): string {
  switch (card?.attempt.kind) {
    case "failed":
      return card.attempt.why;
    case "refused":
      return refusalWords(card.attempt.reason);
    default:
      return "Reading the question…";
  }
}

function head(state: State, session: Paired, question: Question): View {
  const title = liveSnapshot(session, question.conversationId)?.title ?? session.inbox?.[question.requestId]?.title;
  return h(
    "header",
    { key: "head", class: "card-head" },
    h(
      "p",
      { class: "eyebrow" },
      title !== undefined && h("span", { class: "eyebrow-title", dir: "auto" }, title),
      h("span", {}, `${askerWords(question)} · ${ago(question.createdAt, state.now)}`),
      question.status === "pending" &&
        question.expiresAt !== undefined &&
        h("span", { class: "row-tag" }, until(question.expiresAt, state.now)),
    ),
    h("h1", { id: "card-heading", class: "prompt", tabindex: -1, dir: "auto" }, question.prompt),
    h(
      "p",
      { class: "workspace", title: question.workspace },
      h("span", { class: "unseen" }, "Directory: "),
      h("bdi", {}, question.workspace),
    ),
    conversationLink(question.conversationId),
  );
}

function form(state: State, session: Paired, card: Card, question: Question): View {
  const { requestId } = question;
  const { choice, text } = session.drafts[requestId] ?? EMPTY_DRAFT;
  const isReadOnly = session.mode === "read-only";
  const isBusy = card.attempt.kind === "sending" || card.attempt.kind === "uncertain";
  const isLocked = isReadOnly || isBusy || !card.armed;
  const isTextChosen = question.kind === "text" || choice === "text";
  return h(
    "form",
    {
      key: "form",
      class: "form answer",
      novalidate: true,
      on: { submit: () => ({ type: "send_pressed", requestId }) },
    },
    h(
      "p",
      { key: "note", class: "hint" },
      "An answer is a preference the agent reads. It approves nothing and runs no command.",
    ),
    question.kind === "choice" &&
      h(
        "fieldset",
        { key: "options", class: card.armed ? "options" : "options options-new", disabled: isLocked },
        h("legend", { class: "unseen" }, "Options"),
        ...question.options.map((option) => optionView(requestId, option, choice === option.optionId)),
        question.allowFreeform && ownWords(requestId, choice === "text"),
      ),
    isTextChosen &&
      h(
        "div",
        { key: "text", class: "field" },
        h("label", { for: "answer-text" }, "Your answer"),
        h("textarea", {
          id: "answer-text",
          rows: 4,
          maxlength: 4000,
          dir: "auto",
          value: text,
          readonly: isLocked,
          autocomplete: "off",
          "data-sends": requestId,
          on: { input: ({ value }) => ({ type: "text_typed", requestId, text: value }) },
        }),
        text.length > 3_500 && h("p", { key: "left", class: "hint" }, `${4_000 - text.length} characters left`),
      ),
    actions(state, session, card, question),
    card.confirming && confirmation(requestId),
  );
}

function optionView(requestId: string, { optionId, label, description }: Option, isChosen: boolean): View {
  return h(
    "label",
    { key: optionId, class: "option" },
    h("input", {
      type: "radio",
      name: `option ${requestId}`,
      value: optionId,
      checked: isChosen,
      on: { change: () => ({ type: "option_chosen", requestId, choice: optionId }) },
    }),
    h("span", { class: "option-dot", "aria-hidden": "true" }, icon("check")),
    h(
      "span",
      { class: "option-words" },
      h("span", { class: "option-label", dir: "auto" }, label),
      description !== undefined &&
        description !== "" &&
        h("span", { class: "option-description", dir: "auto" }, description),
    ),
  );
}

function ownWords(requestId: string, isChosen: boolean): View {
  return h(
    "label",
    { key: "own words", class: "option option-own" },
    h("input", {
      type: "radio",
      name: `option ${requestId}`,
      value: "text",
      checked: isChosen,
      on: { change: () => ({ type: "option_chosen", requestId, choice: "text" }) },
    }),
    h("span", { class: "option-dot", "aria-hidden": "true" }, icon("check")),
    h("span", { class: "option-words" }, h("span", { class: "option-label" }, "Answer in my own words")),
  );
}

/** What became of the last try, where it did not end in a receipt. */
function outcome(state: State, session: Paired, card: Card, question: Question): Child {
  const { attempt } = card;
  const again = (words = "Read the question again"): View =>
    h(
      "button",
      {
        class: "secondary",
        type: "button",
        on: { click: () => ({ type: "read_again_pressed", requestId: question.requestId }) },
      },
      words,
    );
  const notice = (key: string, words: string, ...more: readonly Child[]): View =>
    h("div", { key, class: "notice notice-warn", role: "alert" }, icon("alert"), h("p", {}, words), ...more);
  switch (attempt.kind) {
    case "uncertain":
      return notice(
        "uncertain",
        "It is not known whether this was stored: the connection went before the reply. The receipt is read as soon as there is a connection; nothing is sent again.",
      );
    case "not_stored":
      return notice("not-stored", "It was not stored: the question still waits. You can send it again.");
    case "conflict":
      return notice(
        "conflict",
        "The conversation has changed since you read this question. Nothing was stored.",
        again(),
      );
    case "refused":
      return notice("refused", refusalWords(attempt.reason), again());
    case "failed":
      return notice("failed", attempt.why, again());
    case "reading":
      return h("p", { key: "reading", class: "quiet", role: "status" }, "Reading the question again…");
    case "none":
    case "sending": {
      if (isOutdated(session, card))
        return notice("outdated", "The conversation has changed since you read this question.", again());
      const live = liveSnapshot(session, card.conversationId);
      if (live !== undefined && live.question?.requestId !== question.requestId && attempt.kind === "none")
        return notice("gone", "This question is no longer the one that waits.", again());
      if (question.expiresAt !== undefined && Date.parse(question.expiresAt) <= state.now)
        return notice("expired", "The time for this question has run out.", again("Check again"));
      return undefined;
    }
    default:
      return attempt satisfies never;
  }
}

/** What is to be known before sending is where the thumb is, with the way to send: never out of view below it. */
function actions(state: State, session: Paired, card: Card, question: Question): View {
  const { requestId } = question;
  const notice = outcome(state, session, card, question);
  const isOver = card.attempt.kind === "conflict" || isOutdated(session, card);
  return h(
    "div",
    { key: "actions", class: "actions" },
    notice,
    session.mode !== "read-only" && !isOver && sending(session, card, requestId),
  );
}

function sending(session: Paired, card: Card, requestId: string): View {
  const isReady = maySend(session, requestId) && answerOf(session, requestId) !== undefined;
  const isSending = card.attempt.kind === "sending";
  const isBusy = isSending || card.attempt.kind === "uncertain";
  return h(
    "div",
    { key: "sending", class: "sending" },
    h(
      "button",
      {
        key: `send ${requestId}`,
        class: "primary",
        type: "submit",
        // a busy button keeps the focus; `update` sends nothing twice
        disabled: !isReady && !isBusy,
        "aria-disabled": isBusy ? "true" : undefined,
        "data-deliberate": true,
      },
      isSending ? "Sending…" : card.attempt.kind === "uncertain" ? "Not known yet…" : "Send answer",
    ),
    h(
      "button",
      {
        key: `cancel ${requestId}`,
        class: "quiet-button",
        type: "button",
        disabled: !maySend(session, requestId),
        "data-deliberate": true,
        on: { click: () => ({ type: "cancel_pressed", requestId }) },
      },
      "Cancel question",
    ),
  );
}

function confirmation(requestId: string): View {
  return h(
    "dialog",
    {
      key: "confirm",
      class: "dialog",
      modal: true,
      "aria-labelledby": "confirm-heading",
      on: { cancel: () => ({ type: "cancel_kept", requestId }) },
    },
    h("h2", { id: "confirm-heading" }, "Cancel this question?"),
    h("p", {}, "The agent is told that you gave no answer. This cannot be undone."),
    h(
      "div",
      { class: "dialog-actions" },
      h(
        "button",
        { class: "secondary", type: "button", on: { click: () => ({ type: "cancel_kept", requestId }) } },
        "Keep it",
      ),
      h(
        "button",
        {
          class: "danger",
          type: "button",
          "data-deliberate": true,
          on: { click: () => ({ type: "cancel_confirmed", requestId }) },
        },
        "Cancel it",
      ),
    ),
  );
}

function receipt(state: State, session: Paired, card: Card, question: Question): View {
  const { requestId } = question;
  const isSubmitted = question.status === "submitted";
  const isOwn = question.resolvedBy?.kind === "device" && question.resolvedBy.id === session.deviceId;
  const when = question.resolvedAt === undefined ? "" : `, ${clock(question.resolvedAt, state.now)}`;
  const next = Object.values(session.inbox ?? {})
    .filter((entry) => entry.question.requestId !== requestId)
    .toSorted((a, b) => (a.question.createdAt < b.question.createdAt ? -1 : 1))[0];
  return h(
    "section",
    { key: "receipt", class: "receipt", "aria-labelledby": "receipt-heading" },
    card.attempt.kind === "refused" &&
      h(
        "div",
        { key: "refused", class: "notice notice-warn", role: "alert" },
        icon("alert"),
        h("p", {}, refusalWords(card.attempt.reason)),
      ),
    h(
      "div",
      { key: "head", class: isSubmitted ? "receipt-head receipt-stored" : "receipt-head" },
      icon(isSubmitted ? "check" : "cross"),
      h(
        "div",
        {},
        h(
          "h2",
          { id: "receipt-heading", tabindex: -1 },
          isSubmitted ? (isOwn ? "Answer stored" : "Answered elsewhere") : "Cancelled",
        ),
        h("p", { class: "quiet" }, `By ${resolver(question, session.deviceId)}${when}`),
      ),
    ),
    isSubmitted
      ? h("blockquote", { key: "answer", class: "answer-words", dir: "auto" }, answerWords(question))
      : h("p", { key: "why" }, cancelWords(question.reason)),
    question.continuation !== undefined && continuation(session, question),
    kept(session, question),
    next !== undefined &&
      h(
        "a",
        {
          key: `next ${next.question.requestId}`,
          class: "primary",
          href: `#/question/${encodeURIComponent(next.conversationId)}/${encodeURIComponent(next.question.requestId)}`,
        },
        "Next question",
      ),
    next === undefined && h("a", { key: "done", class: "secondary", href: "#/" }, "Back to all"),
  );
}

function continuation(session: Paired, question: Question): Child {
  if (question.continuation === undefined) return undefined;
  const { runId, state, reasonCode } = question.continuation;
  const run = liveSnapshot(session, question.conversationId)?.activeRun;
  const words = continuationWords(state, reasonCode, run?.runId === runId && run.state === "running");
  return h(
    "div",
    { key: "continuation", class: "continuation", "aria-live": "polite" },
    h("span", { class: `tag tag-${state}` }, words.short),
    h("p", {}, words.long),
  );
}

/** Who lost a race keeps the text they wrote. */
function kept(session: Paired, question: Question): Child {
  const text = session.drafts[question.requestId]?.text ?? "";
  const isStored = question.answer !== undefined && isSameAnswer(question.answer, { kind: "text", text });
  if (text.trim() === "" || isStored) return undefined;
  const { requestId } = question;
  return h(
    "div",
    { key: "kept", class: "kept" },
    h("h3", {}, "What you wrote was not sent"),
    h("p", { class: "kept-text", dir: "auto" }, text),
    h(
      "div",
      { class: "kept-actions" },
      h(
        "button",
        { class: "secondary", type: "button", on: { click: () => ({ type: "draft_copied", requestId }) } },
        "Copy",
      ),
      h(
        "button",
        { class: "quiet-button", type: "button", on: { click: () => ({ type: "draft_discarded", requestId }) } },
        "Discard",
      ),
    ),
  );
}
