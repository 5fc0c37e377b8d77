import { type ReplayStep, replay } from "../../../machines/chart/replay.js";
import type { CredentialView, DeviceView, Result } from "../../../protocol/operations.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";
import type { Effect, Message, StepTo, Transition } from "./message.js";

/** How many transitions are shown. */
const SHOWN = 50;

export type State = Outside | Inside;

/** Nobody is here yet: the operator's token is wanted. It is kept in this page's memory only. */
interface Outside {
  readonly kind: "outside";
  readonly token: string;
  readonly entering: boolean;
  readonly why: string | undefined;
}

export interface Inside {
  readonly kind: "inside";
  readonly connected: boolean;
  readonly conversations: readonly ConversationSnapshot[];
  readonly credentials: readonly CredentialView[];
  readonly devices: readonly DeviceView[];
  readonly principal: string | undefined;
  readonly watched: Watched | undefined;
  readonly fault: string | undefined;
}

export interface Watched {
  readonly conversationId: string;
  /** The newest; undefined until it was read on this connection. */
  readonly snapshot: ConversationSnapshot | undefined;
  readonly looked: Result<"chart_subscribe"> | undefined;
  /** Newest first. */
  readonly transitions: readonly Transition[];
  readonly replay: Replay | undefined;
}

export interface Replay {
  /** Undefined while the history is being read. */
  readonly steps: readonly ReplayStep[] | undefined;
  readonly at: number;
}

const OUTSIDE: Outside = { kind: "outside", token: "", entering: false, why: undefined };

export const START: State = OUTSIDE;

const ENTERED: Inside = {
  kind: "inside",
  connected: true,
  conversations: [],
  credentials: [],
  devices: [],
  principal: undefined,
  watched: undefined,
  fault: undefined,
};

type Next = readonly [State, readonly Effect[]];

/** What happens next. Pure. */
export function update(state: State, message: Message): Next {
  return state.kind === "outside" ? outside(state, message) : inside(state, message);
}

function outside(state: Outside, message: Message): Next {
  switch (message.type) {
    case "token_typed":
      return [{ ...state, token: message.value, why: undefined }, []];
    case "token_sent": {
      const token = state.token.trim();
      if (state.entering) return [state, []];
      if (token === "") return [{ ...state, why: "Paste the operator's token first." }, []];
      return [{ kind: "outside", token: "", entering: true, why: undefined }, [{ kind: "enter", token }]];
    }
    case "connected":
      return state.entering ? [ENTERED, []] : [state, []];
    case "refused":
      return [{ ...OUTSIDE, why: message.why }, [{ kind: "leave" }]];
    default:
      return [state, []];
  }
}

function inside(state: Inside, message: Message): Next {
  switch (message.type) {
    case "left":
      return [START, [{ kind: "leave" }]];
    case "refused":
      return [{ ...OUTSIDE, why: message.why }, [{ kind: "leave" }]];
    case "connected":
      return [{ ...state, connected: true, fault: undefined }, []];
    case "disconnected":
      // a history that was being read is not read on by itself
      return [{ ...(isReading(state) ? withWatched(state, { replay: undefined }) : state), connected: false }, []];
    case "conversations": {
      const next = { ...state, conversations: message.conversations };
      const [only] = message.conversations;
      return state.watched === undefined && only !== undefined ? watch(next, only.conversationId) : [next, []];
    }
    case "principals":
      return [{ ...state, credentials: message.credentials, devices: message.devices }, []];
    case "chosen":
      return state.watched?.conversationId === message.conversationId
        ? [state, []]
        : watch(state, message.conversationId);
    case "principal_chosen":
      return [{ ...state, principal: message.key }, [{ kind: "look" }]];
    case "look_pressed":
      return [state, [{ kind: "look" }]];
    case "fault":
      return [{ ...state, fault: message.why }, []];
    case "snapshot":
      return message.snapshot.conversationId === state.watched?.conversationId
        ? [withWatched(state, { snapshot: message.snapshot }), []]
        : [state, []];
    case "looked":
      return [withWatched(state, { looked: message.result }), []];
    case "transition": {
      if (message.transition.conversationId !== state.watched?.conversationId) return [state, []];
      const transitions = [message.transition, ...state.watched.transitions].slice(0, SHOWN);
      // what was looked up is of before; an agent's reports change nothing of it
      const looks = message.transition.event !== "run.report";
      return [withWatched(state, { transitions }), looks ? [{ kind: "look" }] : []];
    }
    case "replay_pressed":
      return state.watched === undefined
        ? [state, []]
        : [
            withWatched(state, { replay: { steps: undefined, at: 0 } }),
            [{ kind: "history", conversationId: state.watched.conversationId }],
          ];
    case "live_pressed":
      return [withWatched(state, { replay: undefined }), []];
    case "history": {
      const { watched } = state;
      if (watched?.conversationId !== message.conversationId || watched.replay === undefined) return [state, []];
      return [withWatched(state, { replay: { steps: replay(message.pieces), at: 0 } }), []];
    }
    case "stepped": {
      const past = state.watched?.replay;
      if (past?.steps === undefined) return [state, []];
      return [withWatched(state, { replay: { ...past, at: placeAfter(past.at, message.to, past.steps.length) } }), []];
    }
    case "token_typed":
    case "token_sent":
      return [state, []];
    default:
      return message satisfies never;
  }
}

const isReading = ({ watched }: Inside): boolean => watched?.replay !== undefined && watched.replay.steps === undefined;

const watch = (state: Inside, conversationId: string): Next => [
  {
    ...state,
    watched: { conversationId, snapshot: undefined, looked: undefined, transitions: [], replay: undefined },
    fault: undefined,
  },
  [{ kind: "watch", conversationId }],
];

const withWatched = (state: Inside, part: Partial<Watched>): Inside =>
  state.watched === undefined ? state : { ...state, watched: { ...state.watched, ...part } };

function placeAfter(at: number, to: StepTo, length: number): number {
  switch (to) {
    case "first":
      return 0;
    case "previous":
      return Math.max(0, at - 1);
    case "next":
      return Math.min(length - 1, at + 1);
    case "last":
      return length - 1;
    default:
      return to satisfies never;
  }
}
