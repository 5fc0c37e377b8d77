/** A press that began earlier than this after its target appeared or moved was aimed at something else. Milliseconds. */
export const GRACE = 400;

/** Whether a press was meant for its target, which came to where it is at `since`. */
const isDeliberate = (pressedAt: number, since: number): boolean => pressedAt - since >= GRACE;

/**
 * Guards every element with `data-deliberate`: a press within the grace after it appeared, or after the page moved it
 * under the finger, or that began before, does nothing; nor does a key that is held down.
 */
export class PressGuard {
  readonly #root: HTMLElement;
  readonly #since = new WeakMap<Element, number>();
  #pressedAt = 0;

  constructor(root: HTMLElement) {
    this.#root = root;
    const press = ({ timeStamp }: Event): void => {
      this.#pressedAt = timeStamp;
    };
    addEventListener("pointerdown", press, true);
    addEventListener(
      "keydown",
      (event) => {
        if (!event.repeat) press(event);
        else if (event.key === "Enter" && target(event.target) !== undefined) event.preventDefault();
      },
      true,
    );
    addEventListener("click", (event) => this.#refuse(event, target(event.target)), true);
  }

  /** Draws, and notes what came or moved by it. Scrolling is the person's own and counts for nothing. */
  around(draw: () => void): void {
    const before = new Map(this.#guarded().map((element) => [element, element.getBoundingClientRect()] as const));
    draw();
    const now = performance.now();
    for (const element of this.#guarded()) {
      const was = before.get(element);
      const is = element.getBoundingClientRect();
      const moved = was === undefined || Math.abs(was.top - is.top) > 4 || Math.abs(was.left - is.left) > 4;
      if (moved) this.#came(element, now);
    }
  }

  /** The page has just come into view: whatever is on it has, too. */
  appeared(): void {
    for (const element of this.#guarded()) this.#came(element, performance.now());
  }

  /** `data-moved` says from outside, to a test or a stylesheet, that presses do nothing yet. */
  #came(element: Element, at: number): void {
    this.#since.set(element, at);
    element.setAttribute("data-moved", "");
    setTimeout(() => {
      if (this.#since.get(element) === at) element.removeAttribute("data-moved");
    }, GRACE);
  }

  #guarded(): readonly Element[] {
    return [...this.#root.querySelectorAll("[data-deliberate]")];
  }

  #refuse(event: Event, element: Element | undefined): void {
    if (element === undefined || isDeliberate(this.#pressedAt, this.#since.get(element) ?? 0)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

const target = (on: EventTarget | null): Element | undefined =>
  (on instanceof Element ? on.closest("[data-deliberate]") : null) ?? undefined;
