import type { Message } from "./message.js";

/** What a listener hears of a browser event: plain values, so that views and their tests need no DOM. */
export interface Heard {
  /** The field's text. */
  readonly value: string;
}

export type Listener = (heard: Heard) => Message;

/** An element as a plain value. A key keeps its DOM element, and so its focus and scroll, through moves. */
export interface Element {
  readonly tag: string;
  readonly key: string | undefined;
  readonly attributes: { readonly [name: string]: string | number | boolean | undefined };
  readonly on: { readonly [event: string]: Listener };
  readonly children: readonly Node[];
}

/** Text is data: it only ever becomes a text node. */
export type Node = Element | string;

export type Child = Node | undefined | false;

interface Properties {
  readonly key?: string;
  readonly on?: { readonly [event: string]: Listener };
  readonly [attribute: string]: string | number | boolean | undefined | { readonly [event: string]: Listener };
}

/** Makes an element; absent children are left out. */
export function h(tag: string, properties: Properties = {}, ...children: readonly Child[]): Element {
  const attributes: { [name: string]: string | number | boolean | undefined } = {};
  for (const [name, value] of Object.entries(properties)) {
    if (name !== "key" && typeof value !== "object") attributes[name] = value;
  }
  return {
    tag,
    key: properties.key,
    attributes,
    on: properties.on ?? {},
    children: children.filter((child): child is Node => child !== undefined && child !== false),
  };
}

/** All the text of a view, in order: what a test or a screen reader finds in it. */
export function textOf(node: Node): string {
  return typeof node === "string" ? node : node.children.map(textOf).join(" ");
}
