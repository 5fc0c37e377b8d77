import type { Method } from "../../protocol/operations.js";
import type { ConversationEvent } from "../facts.js";

/** What the names in the chart mean to a reader. The machine has the names; a test holds both lists equal. */

interface EventWords {
  /** The methods of the socket that send it; none where it is the service's own. */
  readonly methods: readonly Method[];
  readonly means: string;
}

export const EVENTS: { readonly [T in ConversationEvent["type"]]: EventWords } = {
  "message.send": { methods: ["conversation_send"], means: "a message that starts a run" },
  "conversation.reset": { methods: ["conversation_reset"], means: "a new incarnation is wanted" },
  "native.claim": { methods: ["native_claim"], means: "a harness takes the native seat" },
  "native.release": { methods: ["native_release"], means: "the harness gives the seat back" },
  "question.ask": { methods: ["request_user_input"], means: "the agent asks, or asks again" },
  "question.read": { methods: ["input_get"], means: "somebody reads one question or receipt" },
  "question.answer": { methods: ["input_answer"], means: "somebody answers a displayed request at a revision" },
  "question.cancel": { methods: ["input_cancel"], means: "somebody cancels a displayed request at a revision" },
  "credential.revoked": {
    methods: ["credential_revoke", "device_revoke"],
    means: "a credential or a device was revoked; told to every conversation it touches",
  },
  "run.begin": { methods: [], means: "the service has looked at a run's facts again and would start it" },
  "run.claim": { methods: ["run_claim"], means: "an attached agent takes the accepted run" },
  "run.report": { methods: ["run_event"], means: "the agent reports of its run" },
  "run.settle": { methods: ["run_settle"], means: "the run completed or failed" },
  "run.cancel": { methods: ["run_cancel"], means: "an owner cancels a run" },
  "commit.interrupted": {
    methods: [],
    means: "a commit's outcome was unknown, it was read back and found durable: these runs are in it",
  },
  "service.restarted": { methods: [], means: "a service starts and finds the conversation" },
  "service.stopping": { methods: [], means: "the service stops in good order" },
};

export const GUARDS: { readonly [guard: string]: string } = {
  callerMayNotAnswer:
    "neither an operator nor a device, or the device is read-only, or the credential is revoked, rotated or expired: looked up now",
  incarnationIsStale: "the request names an earlier incarnation",
  requestIsUnknown: "neither the pending question nor a kept receipt",
  sameAnswerIsStored: "submitted already, with the same option or the same text after trimming",
  anotherAnswerIsStored: "submitted already, with another answer",
  requestWasSubmitted: "submitted already",
  requestWasCancelled: "cancelled already",
  contextIsLost:
    "the bound directory is another one, or the credential of the asking turn is revoked, rotated or expired, or the asking agent's is revoked, or the question is past its expiry",
  revisionHasMoved: "`expectedRevision` is not the current revision",
  optionIsUnknown: "the question has no such option",
  textIsNotAllowed: "a text where only options are allowed",
  queueIsFull: "sixteen runs wait",
  turnMayNotAsk:
    "no workspace, a native driver, no owner's turn, its credential is no longer good, or the directory is another one",
  turnIsNoOwners: "no workspace, a native driver, or no owner's turn",
  draftIsTheSame: "the draft is the pending question's, after trimming",
  readsThePendingOne: "the pending question is meant, by its id or by none",
  readsOneWhoseContextIsLost: "the pending question is meant, and its context is lost",
  readsNothingInParticular: "no request is named",
  readsAReceipt: "a kept receipt is named",
  revokedWhatTheQuestionNeeds: "the asking turn's credential or device, or the asking agent's own, was revoked",
  askedByThisRun: "the active run is cancelled, and the pending question is its own",
  messageRevisionHasMoved: "`expectedRevision` is given and not the current revision",
  harnessIsTheSame: "the same harness claims again",
  workspaceIsReplaced: "the bound directory is another one",
  resetIsCurrent: "`expectedRevision` is the current revision",
  aRunWaits: "at least one run waits",
  isNotTheActiveRun: "the run named is not the active one",
  callerMayNotClaim: "the token is bound to another run",
  callerMayNotAct: "the run is another agent's",
  runnerIsACommand: "the service starts this conversation's runs itself",
  runMayNotStart:
    "the directory is another one, or the responder may no longer answer (a message: its sender was revoked)",
  isTheActiveRun: "the active run is named",
  isAWaitingRun: "a waiting run is named",
  isASettledRun: "a run is named that ended lately",
  settledAlike: "the run ended before, with the same state, reason and summary",
  activeWasInterrupted: "the active run is in that commit",
};

interface EffectWords {
  /** `false` where it only says something to the caller and stores nothing. */
  readonly changes: boolean;
  readonly means: string;
}

const says = (means: string): EffectWords => ({ changes: false, means });
const does = (means: string): EffectWords => ({ changes: true, means });

export const EFFECTS: { readonly [effect: string]: EffectWords } = {
  refuseCaller: says("`refused` with `not_permitted`, `device_read_only`, `device_revoked` or `credential_expired`"),
  refuseStale: says("`refused`, `stale_request`"),
  refuseUnknown: says("`refused`, `unknown_request`"),
  repeatReceipt: says("`resolved` with the stored receipt"),
  refuseOtherAnswer: says("`refused`, `answer_conflict`, with the stored receipt"),
  refuseSubmitted: says("`refused`, `already_submitted`, with the stored receipt"),
  refuseCancelled: says("`refused`, `question_cancelled`, with the stored receipt"),
  refuseRevision: says("`revision_conflict` with the current revision and question"),
  refuseOption: says("`refused`, `unknown_option`; nothing is consumed"),
  refuseText: says("`refused`, `text_not_allowed`; nothing is consumed"),
  refuseFullQueue: says("error `queue_full`; nothing is consumed"),
  refuseAsk: says("error `ineligible_conversation` with `data.reason`"),
  refuseOtherDraft: says("error `question_pending` with the pending request's id"),
  repeatPending: says("`ready`, `already_pending`, with the pending question"),
  showPending: says("`ready` with the pending question"),
  showReceipt: says("`resolved` with the receipt"),
  showNothing: says("`ready` without a question"),
  refuseUnknownRead: says("`refused`, `unknown_request`"),
  refuseRevisionOfMessage: says("`revision_conflict` with the current revision"),
  refuseMessage: says("error `ineligible_conversation` with `data.reason`"),
  showConversation: says("the conversation as it is"),
  forbid: says("error `forbidden`"),
  refuseUnknownRun: says("error `unknown_conversation`, reason `unknown_run`"),
  acknowledge: says("done, as before"),
  acceptMessage: does("stores the message and its run, revision + 1; then `accepted`"),
  openQuestion: does("stores the pending question and `input_requested`, revision + 1; then `ready`"),
  acceptAnswer: does(
    "one commit stores answer, responder, time, the continuation's run in `accepted`, `input_resolved`, `turn accepted` and revision + 1; then `resolved`",
  ),
  cancelByOwner: does("stores the receipt with `cancelled_by_owner` and who did, revision + 1; then `resolved`"),
  cancelForLostContext: does(
    "stores the receipt with `workspace_replaced`, `owner_revoked`, `owner_context_lost` or `expired`, revision + 1; then `refused`, `question_cancelled`",
  ),
  cancelAndShow: does("stores the receipt with what was lost, revision + 1; then `resolved` with that receipt"),
  cancelAndAskAgain: does("stores the receipt with what was lost, revision + 1; then the asking is looked at afresh"),
  cancelForReset: does("stores the receipt with `conversation_reset`, revision + 1"),
  cancelForTakeover: does("stores the receipt with `native_takeover`, revision + 1"),
  cancelForRevocation: does("stores the receipt with `owner_revoked`, revision + 1"),
  cancelWithItsRun: does("stores the receipt with `run_cancelled`, revision + 1"),
  cancelForRestart: does("stores the receipt with `service_restarted`, revision + 1"),
  takeOver: does("stores the harness, revision + 1; then the conversation"),
  giveBack: does("stores that the service drives again, revision + 1; then the conversation"),
  rotateIncarnation: does("stores the new incarnation, revision + 1; then the conversation"),
  adopt: does("stores whose pending question and runs these are"),
  takeNextRun: does("gives the longest waiting run its place; its facts are looked at again before it starts"),
  startRun: does("starts the command, once"),
  handOverRun: does("hands the run to the agent that claims it, once"),
  failStart: does(
    "fails the run with `context_lost`, `responder_revoked` or `sender_revoked`; the agent is never started",
  ),
  recordReport: does("stores the agent's events"),
  settleRun: does("stores the run's end, in its receipt too"),
  cancelRun: does("stores the run's end as `cancelled`, `run_cancelled`, and stops it"),
  endRunsForTakeover: does("cancels and stops the active run (`native_takeover`), fails the waiting (`context_lost`)"),
  endRunsForReset: does("cancels and stops the active run (`conversation_reset`), fails the waiting (`context_lost`)"),
  failRunsForRestart: does("fails every accepted or running run with `service_restarted`; none ever starts again"),
  failRunsForStop: does("fails every accepted or running run with `service_restarted`; none ever starts again"),
  failInterrupted: does("fails the runs of that commit with `acceptance_interrupted`; the answer stays submitted"),
};

/** Does anything change where this is the effect? No effect at all changes the state value at most. */
export const changesSomething = (effect: string | null): boolean =>
  effect !== null && EFFECTS[effect]?.changes === true;
