import type { QuestionResult } from "../../protocol/question.js";
import type { ConversationSnapshot, Inbox } from "../../protocol/snapshot.js";
import { isSameAnswer } from "../link/outcome.js";
import type { Effect, Message, Read, Sent } from "./message.js";
import {
  type Card,
  type Deed,
  type Draft,
  EMPTY_DRAFT,
  type History,
  isOutdated,
  type Paired,
  type Route,
  type State,
} from "./state.js";

/** The next state, and what is to be done about it. */
export type Step = readonly [State, readonly Effect[]];

/** A history page beyond this many events drops the oldest: a phone has to stay quick. */
const MOST_EVENTS = 2_000;
/** So many events are drawn at first, and so many more at each press. */
const EVENTS_SHOWN = 100;

/** The start: paired when a token was kept. */
export function start(
  kept: { readonly deviceId: string; readonly name: string; readonly drafts: Paired["drafts"] } | undefined,
  rest: Pick<State, "now" | "notifications" | "hidden"> & { readonly suggestedName: string },
): State {
  const { suggestedName, ...common } = rest;
  const session =
    kept === undefined ? unpaired(suggestedName) : { ...paired(kept.deviceId, kept.name, true), drafts: kept.drafts };
  return { session, announcement: "", ...common };
}

/** The page as one pure function: what happened, and the state and effects that follow. */
export function update(state: State, message: Message): Step {
  switch (message.type) {
    case "tick":
      return [{ ...state, now: message.now }, []];
    case "visibility":
      return [
        { ...state, hidden: message.hidden, now: message.now },
        message.hidden || state.session.kind === "unpaired" ? [] : [{ kind: "check_mode" }],
      ];
    case "notifications":
      return [{ ...state, notifications: message.state }, []];
    case "notify_pressed":
      return [{ ...state, notifications: "asking" }, [{ kind: "ask_to_notify" }]];
    case "notify_off_pressed":
      return [{ ...state, notifications: "off" }, [{ kind: "stop_notifying" }]];
    case "paired":
      return [
        {
          ...state,
          session: { ...paired(message.deviceId, message.name, message.kept), mode: message.mode },
          announcement: "This device is paired.",
        },
        [{ kind: "focus", on: "heading" }],
      ];
    case "shut_out":
      return endSession(state, "This device was revoked, or its token is no longer good. Pair it again to go on.");
    case "forget_confirmed":
      return endSession(state, "This device has forgotten its token.");
    default:
      return state.session.kind === "unpaired"
        ? updateUnpaired(state, message)
        : updatePaired(state, state.session, message);
  }
}

type Rest = Exclude<
  Message,
  {
    type:
      | "tick"
      | "visibility"
      | "notifications"
      | "notify_pressed"
      | "notify_off_pressed"
      | "paired"
      | "shut_out"
      | "forget_confirmed";
  }
>;

function updateUnpaired(state: State, message: Rest): Step {
  const { session } = state;
  if (session.kind === "paired") return [state, []];
  switch (message.type) {
    case "code_typed":
    case "code_in_address":
      return [{ ...state, session: { ...session, code: message.code, pairing: { kind: "idle" } } }, []];
    case "name_typed":
      return [{ ...state, session: { ...session, name: message.name, pairing: { kind: "idle" } } }, []];
    case "pair_pressed": {
      const [code, name] = [session.code.trim(), session.name.trim()];
      if (session.pairing.kind === "sending") return [state, []];
      if (code === "") return [pairFailed(state, "Type the code that the terminal shows."), []];
      if (name === "") return [pairFailed(state, "Give this device a name."), []];
      return [{ ...state, session: { ...session, pairing: { kind: "sending" } } }, [{ kind: "pair", code, name }]];
    }
    case "pair_failed":
      return [pairFailed(state, message.why), []];
    default:
      return [state, []]; // late news of a session that has ended
  }
}

function pairFailed(state: State, why: string): State {
  if (state.session.kind === "paired") return state;
  return { ...state, session: { ...state.session, pairing: { kind: "failed", why } }, announcement: why };
}

function updatePaired(state: State, session: Paired, message: Rest): Step {
  const become = (next: Paired, effects: readonly Effect[] = [], announcement = state.announcement): Step => [
    { ...state, session: next, announcement },
    effects,
  ];
  switch (message.type) {
    case "connected":
      return become({ ...session, connection: { kind: "connected" } }, readAgain(session), "Connected.");
    case "disconnected":
      if (session.connection.kind === "lost") return [state, []];
      return become(
        { ...session, inboxIsFresh: false, connection: { kind: "lost", since: state.now } },
        [],
        "The connection is lost. Trying again.",
      );
    case "mode":
      return become({ ...session, mode: message.mode });
    case "inbox":
      return updateInbox(state, session, message.inbox);
    case "inbox_stale":
      return become({ ...session, inboxIsFresh: false });
    case "snapshot":
      return updateSnapshot(state, session, message.snapshot);
    case "snapshot_stale":
      return become(inOpen(session, message.conversationId, (open) => ({ ...open, isFresh: false })));
    case "conversation_fault":
      return become(inOpen(session, message.conversationId, (open) => ({ ...open, fault: message.why })));
    case "history": {
      const next = inHistory(session, message.conversationId, (history) => ({
        ...history,
        ...withEvents(history, message.events),
        gap: history.gap || message.gap,
        reading: message.next === undefined ? { kind: "done" } : { kind: "reading", after: message.next },
      }));
      const more: readonly Effect[] =
        next === session || message.next === undefined
          ? []
          : [{ kind: "history", conversationId: message.conversationId, after: message.next }];
      return become(next, more);
    }
    case "history_fault":
      return become(
        inHistory(session, message.conversationId, (history) => ({
          ...history,
          reading:
            history.reading.kind === "reading"
              ? { kind: "failed", after: history.reading.after, why: message.why }
              : history.reading,
        })),
      );
    case "event":
      return become(
        inHistory(session, message.event.conversationId, (history) => ({
          ...history,
          ...withEvents(history, [message.event]),
        })),
      );
    case "gap":
      return become(inHistory(session, message.conversationId, (history) => ({ ...history, gap: true })));
    case "earlier_pressed":
      if (session.open === undefined) return [state, []];
      return become(
        inHistory(session, session.open.conversationId, (history) => ({
          ...history,
          shown: history.shown + EVENTS_SHOWN,
        })),
      );
    case "newest_pressed":
      return [state, [{ kind: "focus", on: "newest" }]];
    case "conversations":
      return become({
        ...session,
        conversations: {
          conversations: message.first
            ? message.conversations
            : [...(session.conversations?.conversations ?? []), ...message.conversations],
          next: message.next,
          loading: false,
        },
      });
    case "more_conversations_pressed":
      if (session.conversations === undefined || session.conversations.loading) return [state, []];
      return become({ ...session, conversations: { ...session.conversations, loading: true } }, [
        { kind: "list", after: session.conversations.next },
      ]);
    case "route":
      return enter(state, session, message.route);
    case "code_in_address":
      return enter(state, session, { kind: "inbox" });
    case "check_mode_pressed":
      return become(session, [{ kind: "check_mode" }]);
    case "forget_pressed":
      return become({ ...session, forgetting: true });
    case "forget_kept":
      return become({ ...session, forgetting: false });
    case "armed":
      return become(inCard(session, message.requestId, (card) => ({ ...card, armed: true })));
    case "option_chosen":
      return become(
        inDraft(session, message.requestId, (draft) => ({ ...draft, choice: message.choice })),
        message.choice === "text"
          ? [{ kind: "keep_drafts" }, { kind: "focus", on: "text" }]
          : [{ kind: "keep_drafts" }],
      );
    case "text_typed":
      return become(
        inDraft(session, message.requestId, () => ({ choice: "text", text: message.text })),
        [{ kind: "keep_drafts" }],
      );
    case "draft_copied":
      return become(session, [{ kind: "copy", text: session.drafts[message.requestId]?.text ?? "" }], "Copied.");
    case "draft_discarded":
      return become(withoutDraft(session, message.requestId), [{ kind: "keep_drafts" }]);
    case "send_pressed": {
      const answer = answerOf(session, message.requestId);
      return answer === undefined ? [state, []] : send(state, session, message.requestId, { kind: "answer", answer });
    }
    case "cancel_pressed":
      return become(inCard(session, message.requestId, (card) => ({ ...card, confirming: true })));
    case "cancel_kept":
      return become(inCard(session, message.requestId, (card) => ({ ...card, confirming: false })));
    case "cancel_confirmed":
      return send(state, session, message.requestId, { kind: "cancel" });
    case "read_again_pressed": {
      const card = session.cards[message.requestId];
      if (card === undefined) return [state, []];
      return become(
        inCard(session, message.requestId, (before) => ({ ...before, attempt: { kind: "reading" } })),
        [{ kind: "read", conversationId: card.conversationId, requestId: message.requestId }],
      );
    }
    case "read":
      return updateRead(state, session, message.requestId, message.outcome);
    case "sent":
      return updateSent(state, session, message.requestId, message.outcome);
    case "code_typed":
    case "name_typed":
    case "pair_pressed":
    case "pair_failed":
      return [state, []]; // of a form that is gone
    default:
      message satisfies never;
      return [state, []];
  }
}

/** The answer that is written for a request, where it is one. */
export function answerOf(session: Paired, requestId: string): Extract<Deed, { kind: "answer" }>["answer"] | undefined {
  const question = session.cards[requestId]?.shown?.question;
  const { choice, text } = session.drafts[requestId] ?? EMPTY_DRAFT;
  if (question === undefined) return undefined;
  if (choice === "text" || question.kind === "text")
    return text.trim() === "" || !question.allowFreeform ? undefined : { kind: "text", text };
  return question.options.some(({ optionId }) => optionId === choice) && choice !== undefined
    ? { kind: "choice", optionId: choice }
    : undefined;
}

/** Whether this device may send something about the card now. */
export function maySend(session: Paired, requestId: string): boolean {
  const card = session.cards[requestId];
  if (card?.shown === undefined || card.shown.question.status !== "pending") return false;
  if (session.connection.kind !== "connected" || session.mode === "read-only" || !card.armed) return false;
  if (isOutdated(session, card)) return false;
  switch (card.attempt.kind) {
    case "none":
    case "failed":
    case "not_stored":
      return true;
    case "refused":
      // these refusals consume nothing and speak of this answer only
      return card.attempt.reason === "unknown_option" || card.attempt.reason === "text_not_allowed";
    case "sending":
    case "uncertain":
    case "conflict":
    case "reading":
      return false;
    default:
      return card.attempt satisfies never;
  }
}

function send(state: State, session: Paired, requestId: string, deed: Deed): Step {
  const card = session.cards[requestId];
  if (card?.shown === undefined || !maySend(session, requestId)) return [state, []];
  const { question, revision } = card.shown;
  const next = inCard(session, requestId, (before) => ({
    ...before,
    confirming: false,
    attempt: { kind: "sending", deed },
  }));
  const { conversationId, incarnationId } = question;
  const target = { conversationId, incarnationId, requestId, expectedRevision: revision };
  return [{ ...state, session: next, announcement: "Sending." }, [{ kind: "send", target, deed }]];
}

/** What is on screen is read again once there is a connection; nothing from before it can be acted on. */
function readAgain(session: Paired): readonly Effect[] {
  const effects: Effect[] = [];
  const { route, open } = session;
  if (route.kind === "question") {
    const attempt = session.cards[route.requestId]?.attempt.kind;
    // an uncertain answer's receipt is read by whoever sent it
    if (attempt !== "sending" && attempt !== "uncertain")
      effects.push({ kind: "read", conversationId: route.conversationId, requestId: route.requestId });
  }
  if (route.kind === "conversations") effects.push({ kind: "list", after: undefined });
  if (route.kind === "conversation" && open !== undefined && open.history.reading.kind !== "done")
    effects.push({ kind: "history", conversationId: open.conversationId, after: open.history.reading.after });
  return effects;
}

function updateInbox(state: State, session: Paired, inbox: Inbox): Step {
  const before = session.inbox;
  const arrived = Object.values(inbox).filter(({ question }) => before?.[question.requestId] === undefined);
  const gone = Object.keys(before ?? {}).filter((requestId) => inbox[requestId] === undefined);
  const effects: Effect[] = gone.map((requestId) => ({ kind: "withdraw", requestId }));
  if (before !== undefined && state.hidden && state.notifications === "on") {
    for (const { question, conversationId, title } of arrived)
      effects.push({ kind: "notify", requestId: question.requestId, conversationId, title, prompt: question.prompt });
  }
  const count = Object.keys(inbox).length;
  const first = arrived[0];
  const announcement =
    before === undefined || first === undefined
      ? state.announcement
      : arrived.length === 1
        ? `A new question in ${first.title}. ${waiting(count)}`
        : `${arrived.length} new questions. ${waiting(count)}`;
  return [{ ...state, session: { ...session, inbox, inboxIsFresh: true }, announcement }, effects];
}

const waiting = (count: number): string => (count === 1 ? "1 waits." : `${count} wait.`);

function updateSnapshot(state: State, session: Paired, snapshot: ConversationSnapshot): Step {
  let next = inOpen(session, snapshot.conversationId, (open) => ({
    ...open,
    snapshot,
    isFresh: true,
    fault: undefined,
  }));
  if (next === session) return [state, []];
  let announcement = state.announcement;
  for (const [requestId, card] of Object.entries(session.cards)) {
    const receipt = snapshot.receipts[requestId];
    if (card.conversationId !== snapshot.conversationId || receipt === undefined) continue;
    if (card.shown?.question.status === "pending") announcement = "This question has been resolved.";
    next = inCard(next, requestId, (before) => resolved(before, receipt, snapshot.revision));
  }
  const listed = next.conversations;
  if (listed !== undefined)
    next = {
      ...next,
      conversations: {
        ...listed,
        conversations: listed.conversations.map((one) =>
          one.conversationId === snapshot.conversationId ? snapshot : one,
        ),
      },
    };
  return [{ ...state, session: next, announcement }, []];
}

type Receipt = NonNullable<QuestionResult["question"]>;

/** The card with its receipt in hand. A reply that is still awaited may say more. */
function resolved(card: Card, receipt: Receipt, revision: number): Card {
  const attempt =
    card.attempt.kind === "sending" || card.attempt.kind === "refused" ? card.attempt : ({ kind: "none" } as const);
  return { ...card, confirming: false, shown: { question: receipt, revision }, attempt };
}

function updateRead(state: State, session: Paired, requestId: string, outcome: Read): Step {
  const card = session.cards[requestId];
  if (card === undefined || card.attempt.kind === "sending" || card.attempt.kind === "uncertain") return [state, []];
  switch (outcome.kind) {
    case "unreachable":
      return [{ ...state, session: inCard(session, requestId, (before) => ({ ...before, attempt: none })) }, []];
    case "fault":
      return [
        {
          ...state,
          session: inCard(session, requestId, (before) => ({
            ...before,
            attempt: { kind: "failed", why: outcome.why },
          })),
        },
        [],
      ];
    case "result":
      return withResult(state, session, requestId, outcome.result);
    default:
      return outcome satisfies never;
  }
}

const none = { kind: "none" } as const;

/** A question as it was just read replaces the one that is shown. */
function withResult(state: State, session: Paired, requestId: string, result: QuestionResult): Step {
  const { question, revision } = result;
  if (question === undefined || question.requestId !== requestId) {
    const reason = result.status === "refused" ? refusal(result) : "unknown_request";
    const next = inCard(session, requestId, (card) => ({ ...card, attempt: { kind: "refused", reason } }));
    return [{ ...state, session: next }, []];
  }
  const before = session.cards[requestId]?.shown;
  const next = inCard(session, requestId, (card) => ({
    ...card,
    shown: { question, revision: revision ?? card.shown?.revision ?? 0 },
    attempt: none,
    // what is read for the first time has only just appeared
    armed: card.armed && before !== undefined,
  }));
  const effects: readonly Effect[] = before === undefined ? [{ kind: "arm", requestId }] : [];
  return [{ ...state, session: next }, effects];
}

const refusal = ({ reason }: QuestionResult) =>
  reason === undefined || reason === "already_pending" ? ("unknown" as const) : reason;

function updateSent(state: State, session: Paired, requestId: string, outcome: Sent): Step {
  const card = session.cards[requestId];
  if (card === undefined) return [state, []];
  const attempted = card.attempt.kind === "sending" || card.attempt.kind === "uncertain" ? card.attempt : undefined;
  const become = (next: (card: Card) => Card, announcement: string): Step => [
    { ...state, session: inCard(session, requestId, next), announcement },
    [],
  ];
  switch (outcome.kind) {
    case "not_sent":
      return become(
        (before) => ({ ...before, attempt: { kind: "failed", why: "There was no connection: nothing was sent." } }),
        "Not sent.",
      );
    case "fault":
      return become((before) => ({ ...before, attempt: { kind: "failed", why: outcome.why } }), outcome.why);
    case "uncertain":
      if (attempted === undefined) return [state, []];
      return become(
        (before) => ({ ...before, attempt: { kind: "uncertain", deed: attempted.deed } }),
        "It is not known whether this was stored.",
      );
    case "recovered": {
      const [next, effects] = withResult(state, session, requestId, outcome.result);
      if (outcome.result.question?.status !== "pending" || attempted === undefined || next.session.kind !== "paired")
        return settled(next, requestId, effects);
      const { deed } = attempted;
      const session2 = inCard(next.session, requestId, (before) => ({
        ...before,
        attempt: { kind: "not_stored", deed },
      }));
      return [{ ...next, session: session2, announcement: "It was not stored. The question still waits." }, effects];
    }
    case "result":
      return replied(state, session, requestId, outcome.result);
    default:
      return outcome satisfies never;
  }
}

/** The service's reply to an answer or a cancellation. Contract section 6. */
function replied(state: State, session: Paired, requestId: string, result: QuestionResult): Step {
  switch (result.status) {
    case "ready":
    case "resolved": {
      const [next, effects] = withResult(state, session, requestId, result);
      return settled(next, requestId, effects);
    }
    case "revision_conflict": {
      const next = inCard(session, requestId, (card) => ({ ...card, attempt: { kind: "conflict" } }));
      return [{ ...state, session: next, announcement: "The conversation has changed. Read the question again." }, []];
    }
    case "refused": {
      const reason = refusal(result);
      if (reason === "device_revoked" || reason === "credential_expired")
        return endSession(state, "This device was revoked, or its token is no longer good. Pair it again to go on.");
      const { question } = result;
      const next = inCard(session, requestId, (card) => ({
        ...card,
        shown:
          question === undefined ? card.shown : { question, revision: result.revision ?? card.shown?.revision ?? 0 },
        attempt: { kind: "refused", reason },
      }));
      const mode = reason === "device_read_only" ? "read-only" : next.mode;
      return [{ ...state, session: { ...next, mode }, announcement: "The service refused this." }, []];
    }
    default:
      return result.status satisfies never;
  }
}

/** With the receipt in hand a draft that became the answer is done with; another one is the person's to keep. */
function settled(state: State, requestId: string, effects: readonly Effect[]): Step {
  if (state.session.kind !== "paired") return [state, effects];
  const question = state.session.cards[requestId]?.shown?.question;
  if (question === undefined || question.status === "pending") return [state, effects];
  const draft = state.session.drafts[requestId];
  const isStored =
    draft !== undefined &&
    question.answer !== undefined &&
    (draft.text.trim() === "" || isSameAnswer(question.answer, { kind: "text", text: draft.text }));
  const session = isStored ? withoutDraft(state.session, requestId) : state.session;
  const announcement = question.status === "submitted" ? "Stored." : "The question is cancelled.";
  return [{ ...state, session, announcement }, [...effects, { kind: "keep_drafts" }]];
}

function enter(state: State, session: Paired, route: Route): Step {
  const wanted = route.kind === "question" || route.kind === "conversation" ? route.conversationId : undefined;
  const effects: Effect[] = [{ kind: "focus", on: "heading" }];
  let next: Paired = { ...session, route, forgetting: false };
  if (session.open !== undefined && session.open.conversationId !== wanted) {
    effects.push({ kind: "unwatch", conversationId: session.open.conversationId });
    next = { ...next, open: undefined };
  }
  if (wanted !== undefined && next.open === undefined) {
    effects.push({ kind: "watch", conversationId: wanted });
    next = {
      ...next,
      open: { conversationId: wanted, snapshot: undefined, isFresh: false, fault: undefined, history: EMPTY_HISTORY },
    };
  }
  const isConnected = session.connection.kind === "connected";
  switch (route.kind) {
    case "question": {
      const card = next.cards[route.requestId];
      const isBusy = card?.attempt.kind === "sending" || card?.attempt.kind === "uncertain";
      // a question that is entered is read anew; what was written for it is still there
      if (!isBusy) {
        next = {
          ...next,
          cards: { ...next.cards, [route.requestId]: newCard(route.conversationId) },
        };
        if (isConnected)
          effects.push({ kind: "read", conversationId: route.conversationId, requestId: route.requestId });
      }
      break;
    }
    case "conversations":
      if (isConnected) effects.push({ kind: "list", after: undefined });
      break;
    case "conversation":
      if (isConnected && next.open !== undefined && next.open.history.reading.kind !== "done")
        effects.push({
          kind: "history",
          conversationId: route.conversationId,
          after: next.open.history.reading.after,
        });
      break;
    case "inbox":
    case "device":
      break;
    default:
      route satisfies never;
  }
  return [{ ...state, session: next }, effects];
}

function endSession(state: State, notice: string): Step {
  if (state.session.kind === "unpaired") return [state, []];
  const { inbox, name } = state.session;
  return [
    { ...state, session: { ...unpaired(name), notice }, announcement: notice },
    [
      { kind: "forget" },
      ...Object.keys(inbox ?? {}).map((requestId) => ({ kind: "withdraw", requestId }) as const),
      { kind: "focus", on: "heading" },
    ],
  ];
}

const EMPTY_HISTORY: History = {
  events: [],
  gap: false,
  reading: { kind: "reading", after: undefined },
  shown: EVENTS_SHOWN,
};

const newCard = (conversationId: string): Card => ({
  conversationId,
  shown: undefined,
  armed: false,
  attempt: { kind: "reading" },
  confirming: false,
});

function unpaired(name: string): Extract<State["session"], { kind: "unpaired" }> {
  return { kind: "unpaired", code: "", name, pairing: { kind: "idle" }, notice: undefined };
}

function paired(deviceId: string, name: string, kept: boolean): Paired {
  return {
    kind: "paired",
    deviceId,
    name,
    kept,
    connection: { kind: "connecting" },
    mode: undefined,
    route: { kind: "inbox" },
    forgetting: false,
    inbox: undefined,
    inboxIsFresh: false,
    conversations: undefined,
    open: undefined,
    cards: {},
    drafts: {},
  };
}

function inCard(session: Paired, requestId: string, change: (card: Card) => Card): Paired {
  const card = session.cards[requestId];
  return card === undefined ? session : { ...session, cards: { ...session.cards, [requestId]: change(card) } };
}

function inDraft(session: Paired, requestId: string, change: (draft: Draft) => Draft): Paired {
  const card = session.cards[requestId];
  // what is on its way is not edited: it would no longer be what was sent
  if (card === undefined || card.attempt.kind === "sending" || card.attempt.kind === "uncertain") return session;
  return { ...session, drafts: { ...session.drafts, [requestId]: change(session.drafts[requestId] ?? EMPTY_DRAFT) } };
}

function withoutDraft(session: Paired, requestId: string): Paired {
  const { [requestId]: _, ...drafts } = session.drafts;
  return { ...session, drafts };
}

type Open = NonNullable<Paired["open"]>;

function inOpen(session: Paired, conversationId: string, change: (open: Open) => Open): Paired {
  const { open } = session;
  return open?.conversationId === conversationId ? { ...session, open: change(open) } : session;
}

function inHistory(session: Paired, conversationId: string, change: (history: History) => History): Paired {
  return inOpen(session, conversationId, (open) => ({ ...open, history: change(open.history) }));
}

/** Pages and live events overlap: each event once, in order, the newest kept. */
function withEvents(history: History, more: History["events"]): Pick<History, "events" | "gap"> {
  const known = new Set(history.events.map(({ cursor }) => cursor));
  const added = more.filter(({ cursor }) => !known.has(cursor));
  const all = [...history.events, ...added].sort((a, b) => (a.cursor < b.cursor ? -1 : a.cursor > b.cursor ? 1 : 0));
  return { events: all.slice(-MOST_EVENTS), gap: history.gap || all.length > MOST_EVENTS };
}
