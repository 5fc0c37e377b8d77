import { painter } from "../dom.js";
import type { Effect, Message, StepTo } from "./message.js";
import { Service } from "./service.js";
import { START, type State, update } from "./state.js";
import { pageView } from "./view.js";

const paint = painter<Message>(document.body, dispatch);
let state: State = START;
let service: Service | undefined;
let isDrawing = false;

/** Everything that happens comes through here, one after another. */
function dispatch(message: Message): void {
  const before = state.kind;
  const [next, effects] = update(state, message);
  state = next;
  if (!isDrawing) draw();
  if (state.kind !== before) document.querySelector<HTMLElement>("h1")?.focus();
  for (const effect of effects) perform(effect);
}

function draw(): void {
  isDrawing = true;
  paint(pageView(state));
  isDrawing = false;
}

function perform(effect: Effect): void {
  switch (effect.kind) {
    case "enter":
      service?.close();
      service = new Service(location.origin, effect.token, dispatch);
      return;
    case "leave":
      service?.close();
      service = undefined;
      return;
    case "watch":
      service?.watch(effect.conversationId);
      return;
    case "look":
      service?.look();
      return;
    case "history":
      void service?.history(effect.conversationId);
      return;
    default:
      effect satisfies never;
  }
}

const STEPS: { readonly [key: string]: StepTo } = {
  ArrowLeft: "previous",
  ArrowRight: "next",
  Home: "first",
  End: "last",
};

addEventListener("keydown", (event) => {
  const { target, key, altKey, ctrlKey, metaKey, shiftKey } = event;
  const to = STEPS[key];
  if (to === undefined || altKey || ctrlKey || metaKey || shiftKey) return;
  if (!(target instanceof Element) || target.closest(".replay") === null) return;
  event.preventDefault();
  dispatch({ type: "stepped", to });
});

draw();
