import { painter } from "./dom.js";
import { GRACE, PressGuard } from "./guard.js";
import {
  forgetEverything,
  keepCredential,
  keepDrafts,
  keepWish,
  keptCredential,
  keptDrafts,
  onCredentialChange,
  wantsToBeNotified,
} from "./keep.js";
import type { Effect, Message } from "./message.js";
import { askToNotify, notificationState, notify, withdraw } from "./notify.js";
import { pair } from "./pair.js";
import { readFragment } from "./route.js";
import { Service } from "./service.js";
import { start, update } from "./update.js";
import { pageView, titleOf } from "./view/page.js";

/** "2 minutes ago" moves on this often, in milliseconds. */
const TICK = 30_000;

const root = document.body;
const guard = new PressGuard(root);
const paint = painter(root, dispatch);
const credential = keptCredential();
let token = credential?.token;
let service: Service | undefined;
let state = start(credential && { ...credential, drafts: keptDrafts() }, {
  now: Date.now(),
  notifications: notificationState(wantsToBeNotified()),
  hidden: document.hidden,
  suggestedName: suggestedName(),
});
let isDrawing = false;
/** What had the focus last. A control that is disabled while its press is under way loses it, and may then go. */
let focused: Element | undefined;
addEventListener("focusin", ({ target }) => {
  focused = target instanceof Element ? target : undefined;
});

/** Everything that happens comes through here, one after another. */
function dispatch(message: Message): void {
  const [next, effects] = update(state, message);
  state = next;
  if (!isDrawing) draw();
  for (const effect of effects) perform(effect);
}

/** At once, so that what a person presses next is what they see. */
function draw(): void {
  isDrawing = true;
  guard.around(() => paint(pageView(state)));
  isDrawing = false;
  // what had the focus is gone: the next thing to read is what took its place
  if (focused?.isConnected === false && document.activeElement === document.body) {
    focused = undefined;
    focusOn("heading");
  }
  document.title = titleOf(state);
  const count = state.session.kind === "paired" ? Object.keys(state.session.inbox ?? {}).length : 0;
  if ("setAppBadge" in navigator) void navigator.setAppBadge(count).catch(ignore);
}

const ignore = (): void => {};

function perform(effect: Effect): void {
  switch (effect.kind) {
    case "pair":
      void redeem(effect.code, effect.name);
      return;
    case "forget":
      service?.close();
      service = undefined;
      token = undefined;
      forgetEverything();
      history.replaceState(null, "", "/");
      return;
    case "watch":
      service?.watch(effect.conversationId);
      return;
    case "unwatch":
      service?.unwatch(effect.conversationId);
      return;
    case "history":
      void service?.history(effect.conversationId, effect.after);
      return;
    case "list":
      void service?.list(effect.after);
      return;
    case "read":
      void service?.read(effect.conversationId, effect.requestId);
      return;
    case "send":
      void service?.send(effect.target, effect.deed);
      return;
    case "check_mode":
      void service?.checkMode();
      return;
    case "arm":
      setTimeout(() => dispatch({ type: "armed", requestId: effect.requestId }), GRACE);
      return;
    case "focus":
      focusOn(effect.on);
      return;
    case "copy":
      void copy(effect.text);
      return;
    case "keep_drafts":
      if (state.session.kind === "paired") keepDrafts(state.session.drafts);
      return;
    case "ask_to_notify":
      void askToNotify().then((answer) => {
        keepWish(answer === "on");
        dispatch({ type: "notifications", state: answer });
      });
      return;
    case "stop_notifying":
      keepWish(false);
      return;
    case "notify":
      void notify(effect).catch(ignore);
      return;
    case "withdraw":
      void withdraw(effect.requestId).catch(ignore);
      return;
    default:
      effect satisfies never;
  }
}

async function redeem(code: string, name: string): Promise<void> {
  const outcome = await pair(location.origin, code, name);
  if (outcome.kind === "failed") return dispatch({ type: "pair_failed", why: outcome.why });
  const { deviceId } = outcome.credential;
  token = outcome.credential.token;
  const kept = keepCredential(outcome.credential);
  service = new Service(location.origin, token, dispatch);
  dispatch({ type: "paired", deviceId, name, mode: outcome.mode, kept });
}

/** In the detail where there is one, else the first heading: the view that was just entered. */
function focusOn(what: "heading" | "text" | "newest"): void {
  if (what !== "heading") {
    document.getElementById(what === "text" ? "answer-text" : "newest")?.focus();
    return;
  }
  const found = [".receipt h2", ".pane-detail h1", "h1"]
    .flatMap((selector) => [...document.querySelectorAll<HTMLElement>(selector)])
    .find((one) => one.offsetParent !== null);
  found?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // without HTTPS there is no clipboard: the text is selected, to be copied by hand
    const shown = document.querySelector(".kept-text");
    if (shown !== null) getSelection()?.selectAllChildren(shown);
  }
}

function follow(): void {
  const place = readFragment(location.hash);
  if (place.kind === "code") {
    // a code is used once, by whoever has it: it does not stay in the address or in the browser's history
    history.replaceState(null, "", "/");
    dispatch({ type: "code_in_address", code: place.code });
  } else dispatch({ type: "route", route: place });
}

function suggestedName(): string {
  const agent = navigator.userAgent;
  const kind = /iPhone/.test(agent)
    ? "iPhone"
    : /iPad/.test(agent)
      ? "iPad"
      : /Android/.test(agent)
        ? "Android device"
        : /Mac/.test(agent)
          ? "Mac"
          : /Windows/.test(agent)
            ? "Windows PC"
            : "";
  return kind === "" ? "Browser" : kind;
}

/** Enter that ends an input method's composition is a letter's, not a form's. Safari tells by the key code only. */
addEventListener(
  "keydown",
  (event) => {
    if (event.key === "Enter" && (event.isComposing || event.keyCode === 229)) return event.preventDefault();
    const { target } = event;
    if (!(target instanceof HTMLTextAreaElement) || target.form === null) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) {
      event.preventDefault();
      target.form.requestSubmit();
    }
  },
  true,
);
addEventListener("hashchange", follow);
addEventListener("online", () => service?.nudge());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) guard.appeared();
  dispatch({ type: "visibility", hidden: document.hidden, now: Date.now() });
});
onCredentialChange(() => {
  // another tab of this browser has paired, or has forgotten: begin again with what is kept now
  if (keptCredential()?.token !== token) location.reload();
});
setInterval(() => dispatch({ type: "tick", now: Date.now() }), TICK);

if ("serviceWorker" in navigator) {
  void navigator.serviceWorker.register("/sw.js").catch(ignore);
  navigator.serviceWorker.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    if (typeof data === "string" && data.startsWith("#/")) location.hash = data;
  });
}
if (credential !== undefined) service = new Service(location.origin, credential.token, dispatch);
follow();
