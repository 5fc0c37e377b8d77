import { safeText } from "../text.js";
import type { Element as View, Node as ViewNode } from "./html.js";
import type { Message } from "./message.js";

/** What an element was last drawn from, and the listeners it has. */
interface Drawn<M> {
  view: View<M>;
  readonly heard: Set<string>;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * Draws views into `root`: a patch of what is there, so that focus, scroll and a text being composed stay. Text goes
 * through `safeText` and becomes text nodes and attributes, never markup.
 */
export function painter<M = Message>(
  root: Element,
  dispatch: (message: M) => void,
): (views: readonly ViewNode<M>[]) => void {
  const drawn = new WeakMap<Node, Drawn<M>>();

  function create(view: ViewNode<M>, parent: Element): Node {
    if (typeof view === "string") return document.createTextNode(safeText(view));
    const isSvg = view.tag === "svg" || (parent.namespaceURI === SVG && parent.tagName !== "foreignObject");
    const element = isSvg ? document.createElementNS(SVG, view.tag) : document.createElement(view.tag);
    drawn.set(element, { view: { ...view, attributes: {}, children: [] }, heard: new Set() });
    patch(element, view);
    return element;
  }

  function fits(node: Node, view: ViewNode<M>): boolean {
    if (typeof view === "string") return node.nodeType === Node.TEXT_NODE;
    const before = drawn.get(node)?.view;
    return before !== undefined && before.tag === view.tag && before.key === view.key;
  }

  function patch(element: Element, view: View<M>): void {
    const was = drawn.get(element);
    if (was === undefined) return;
    const before = was.view.attributes;
    for (const name of Object.keys({ ...before, ...view.attributes })) {
      setAttribute(element, name, view.attributes[name]);
    }
    for (const event of Object.keys(view.on)) {
      if (was.heard.has(event)) continue;
      was.heard.add(event);
      element.addEventListener(event, (happened) => {
        const listener = drawn.get(element)?.view.on[event];
        if (listener === undefined) return;
        if (event === "submit" || event === "cancel") happened.preventDefault();
        dispatch(listener({ value: textOf(element) }));
      });
    }
    was.view = view;
    children(element, view.children);
  }

  function children(parent: Element, views: readonly ViewNode<M>[]): void {
    const keyed = new Map<string, Node>();
    for (const node of parent.childNodes) {
      const key = drawn.get(node)?.view.key;
      if (key !== undefined) keyed.set(key, node);
    }
    const wanted = new Set(views.map((view) => (typeof view === "string" ? undefined : view.key)));
    let cursor = parent.firstChild;
    for (const view of views) {
      // what is here and in no later place makes room, so that what stays is not moved: moving would take its focus
      while (cursor !== null && isLeftOver(cursor, wanted) && !fits(cursor, view)) cursor = removed(cursor);
      const key = typeof view === "string" ? undefined : view.key;
      const kept = key === undefined ? cursor : keyed.get(key);
      if (kept !== undefined && kept !== null && fits(kept, view)) {
        if (kept === cursor) cursor = cursor.nextSibling;
        else parent.insertBefore(kept, cursor);
        update(kept, view);
      } else parent.insertBefore(create(view, parent), cursor);
    }
    while (cursor !== null) cursor = removed(cursor);
  }

  function isLeftOver(node: Node, wanted: ReadonlySet<string | undefined>): boolean {
    const key = drawn.get(node)?.view.key;
    return key === undefined || !wanted.has(key);
  }

  function update(node: Node, view: ViewNode<M>): void {
    if (typeof view === "string") {
      const text = safeText(view);
      if (node.nodeValue !== text) node.nodeValue = text;
    } else if (node instanceof Element) patch(node, view);
  }

  return (views) => children(root, views);
}

function removed(node: ChildNode): ChildNode | null {
  const next = node.nextSibling;
  node.remove();
  return next;
}

const textOf = (element: Element): string =>
  element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement
    ? element.value
    : "";

/** Attributes whose text may come from the service; the rest are this page's own words. */
const SHOWN = new Set(["aria-label", "title", "placeholder"]);

function setAttribute(element: Element, name: string, value: string | number | boolean | undefined): void {
  if (name === "value" && (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement)) {
    // the person's own text, kept as it is; setting it when nothing changed would move the caret
    if (element.value !== value) element.value = String(value ?? "");
    return;
  }
  if (name === "checked" && element instanceof HTMLInputElement) {
    element.checked = value === true;
    return;
  }
  if (name === "modal" && element instanceof HTMLDialogElement) {
    if (value === true) requestAnimationFrame(() => element.isConnected && !element.open && element.showModal());
    return;
  }
  if (value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : SHOWN.has(name) ? safeText(String(value)) : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}
