import typia from "typia";
import { type Checked, checked, type Validator } from "./checked.js";
import type { ConversationEvent } from "./events.js";
import type { ServiceFrame } from "./frames.js";
import type { Method, NotificationName, Notifications, Result } from "./operations.js";

/** Strict validators of what the service sends. Contract sections 4 and 5. */
const resultValidators: { readonly [M in Method]: Validator<Result<M>> } = {
  authenticate: typia.createValidateEquals<Result<"authenticate">>(),
  conversation_create: typia.createValidateEquals<Result<"conversation_create">>(),
  conversation_list: typia.createValidateEquals<Result<"conversation_list">>(),
  conversation_show: typia.createValidateEquals<Result<"conversation_show">>(),
  conversation_send: typia.createValidateEquals<Result<"conversation_send">>(),
  conversation_reset: typia.createValidateEquals<Result<"conversation_reset">>(),
  conversation_tail: typia.createValidateEquals<Result<"conversation_tail">>(),
  conversation_subscribe: typia.createValidateEquals<Result<"conversation_subscribe">>(),
  conversation_unsubscribe: typia.createValidateEquals<Result<"conversation_unsubscribe">>(),
  inbox_subscribe: typia.createValidateEquals<Result<"inbox_subscribe">>(),
  inbox_unsubscribe: typia.createValidateEquals<Result<"inbox_unsubscribe">>(),
  native_claim: typia.createValidateEquals<Result<"native_claim">>(),
  native_release: typia.createValidateEquals<Result<"native_release">>(),
  request_user_input: typia.createValidateEquals<Result<"request_user_input">>(),
  input_get: typia.createValidateEquals<Result<"input_get">>(),
  input_list: typia.createValidateEquals<Result<"input_list">>(),
  input_answer: typia.createValidateEquals<Result<"input_answer">>(),
  input_cancel: typia.createValidateEquals<Result<"input_cancel">>(),
  run_claim: typia.createValidateEquals<Result<"run_claim">>(),
  run_event: typia.createValidateEquals<Result<"run_event">>(),
  run_settle: typia.createValidateEquals<Result<"run_settle">>(),
  run_cancel: typia.createValidateEquals<Result<"run_cancel">>(),
  device_pair_begin: typia.createValidateEquals<Result<"device_pair_begin">>(),
  device_pair_complete: typia.createValidateEquals<Result<"device_pair_complete">>(),
  device_list: typia.createValidateEquals<Result<"device_list">>(),
  device_mode: typia.createValidateEquals<Result<"device_mode">>(),
  device_revoke: typia.createValidateEquals<Result<"device_revoke">>(),
  credential_issue: typia.createValidateEquals<Result<"credential_issue">>(),
  credential_list: typia.createValidateEquals<Result<"credential_list">>(),
  credential_rotate: typia.createValidateEquals<Result<"credential_rotate">>(),
  credential_revoke: typia.createValidateEquals<Result<"credential_revoke">>(),
  project_add: typia.createValidateEquals<Result<"project_add">>(),
  project_remove: typia.createValidateEquals<Result<"project_remove">>(),
  project_list: typia.createValidateEquals<Result<"project_list">>(),
  project_membership: typia.createValidateEquals<Result<"project_membership">>(),
  chart_subscribe: typia.createValidateEquals<Result<"chart_subscribe">>(),
  chart_unsubscribe: typia.createValidateEquals<Result<"chart_unsubscribe">>(),
  service_status: typia.createValidateEquals<Result<"service_status">>(),
};

const notificationValidators: { readonly [N in NotificationName]: Validator<Notifications[N]> } = {
  chart_transition: typia.createValidateEquals<Notifications["chart_transition"]>(),
  conversation_delta: typia.createValidateEquals<Notifications["conversation_delta"]>(),
  conversation_event: typia.createValidateEquals<Notifications["conversation_event"]>(),
  conversation_gap: typia.createValidateEquals<Notifications["conversation_gap"]>(),
  credential_ended: typia.createValidateEquals<Notifications["credential_ended"]>(),
  inbox_delta: typia.createValidateEquals<Notifications["inbox_delta"]>(),
};

const serviceFrame = typia.createValidate<ServiceFrame>();
const conversationEvent = typia.createValidateEquals<ConversationEvent>();

export const isNotificationName = (name: string): name is NotificationName =>
  Object.hasOwn(notificationValidators, name);

/** Checks a reply; a client that gets another one treats it as a fault of the service. */
export const checkResult = <M extends Method>(method: M, value: unknown): Checked<Result<M>> =>
  checked<Result<M>>(resultValidators[method], value);

/** Checks what came unasked. */
export const checkNotification = <N extends NotificationName>(name: N, value: unknown): Checked<Notifications[N]> =>
  checked<Notifications[N]>(notificationValidators[name], value);

export const checkEvent = (value: unknown): Checked<ConversationEvent> => checked(conversationEvent, value);

export const checkServiceFrame = (value: unknown): Checked<ServiceFrame> => checked(serviceFrame, value);
