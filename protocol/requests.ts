import typia from "typia";
import { type Checked, checked, type Validator } from "./checked.js";
import type { RequestFrame } from "./frames.js";
import type { Method, Params } from "./operations.js";

/** Strict validators of what a client sends. Contract sections 3 to 5. */
const paramsValidators: { readonly [M in Method]: Validator<Params<M>> } = {
  authenticate: typia.createValidateEquals<Params<"authenticate">>(),
  conversation_create: typia.createValidateEquals<Params<"conversation_create">>(),
  conversation_list: typia.createValidateEquals<Params<"conversation_list">>(),
  conversation_show: typia.createValidateEquals<Params<"conversation_show">>(),
  conversation_send: typia.createValidateEquals<Params<"conversation_send">>(),
  conversation_reset: typia.createValidateEquals<Params<"conversation_reset">>(),
  conversation_tail: typia.createValidateEquals<Params<"conversation_tail">>(),
  conversation_subscribe: typia.createValidateEquals<Params<"conversation_subscribe">>(),
  conversation_unsubscribe: typia.createValidateEquals<Params<"conversation_unsubscribe">>(),
  inbox_subscribe: typia.createValidateEquals<Params<"inbox_subscribe">>(),
  inbox_unsubscribe: typia.createValidateEquals<Params<"inbox_unsubscribe">>(),
  native_claim: typia.createValidateEquals<Params<"native_claim">>(),
  native_release: typia.createValidateEquals<Params<"native_release">>(),
  request_user_input: typia.createValidateEquals<Params<"request_user_input">>(),
  input_get: typia.createValidateEquals<Params<"input_get">>(),
  input_list: typia.createValidateEquals<Params<"input_list">>(),
  input_answer: typia.createValidateEquals<Params<"input_answer">>(),
  input_cancel: typia.createValidateEquals<Params<"input_cancel">>(),
  run_claim: typia.createValidateEquals<Params<"run_claim">>(),
  run_event: typia.createValidateEquals<Params<"run_event">>(),
  run_settle: typia.createValidateEquals<Params<"run_settle">>(),
  run_cancel: typia.createValidateEquals<Params<"run_cancel">>(),
  device_pair_begin: typia.createValidateEquals<Params<"device_pair_begin">>(),
  device_pair_complete: typia.createValidateEquals<Params<"device_pair_complete">>(),
  device_list: typia.createValidateEquals<Params<"device_list">>(),
  device_mode: typia.createValidateEquals<Params<"device_mode">>(),
  device_revoke: typia.createValidateEquals<Params<"device_revoke">>(),
  credential_issue: typia.createValidateEquals<Params<"credential_issue">>(),
  credential_list: typia.createValidateEquals<Params<"credential_list">>(),
  credential_rotate: typia.createValidateEquals<Params<"credential_rotate">>(),
  credential_revoke: typia.createValidateEquals<Params<"credential_revoke">>(),
  project_add: typia.createValidateEquals<Params<"project_add">>(),
  project_remove: typia.createValidateEquals<Params<"project_remove">>(),
  project_list: typia.createValidateEquals<Params<"project_list">>(),
  project_membership: typia.createValidateEquals<Params<"project_membership">>(),
  chart_subscribe: typia.createValidateEquals<Params<"chart_subscribe">>(),
  chart_unsubscribe: typia.createValidateEquals<Params<"chart_unsubscribe">>(),
  service_status: typia.createValidateEquals<Params<"service_status">>(),
};

const requestFrame = typia.createValidateEquals<RequestFrame>();

/** Every method's name, in the order of the contract's table. */
export const METHODS = Object.keys(paramsValidators) as readonly Method[];

export const isMethod = (name: string): name is Method => Object.hasOwn(paramsValidators, name);

/** Checks the parameters of a request. */
export const checkParams = <M extends Method>(method: M, value: unknown): Checked<Params<M>> =>
  checked<Params<M>>(paramsValidators[method], value);

/** Checks a frame that a client sent, all but its parameters. */
export const checkRequestFrame = (value: unknown): Checked<RequestFrame> => checked(requestFrame, value);
