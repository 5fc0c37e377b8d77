import type { Message } from "./message.js";

/** What a listener hears of a browser event: plain values, so that views and their tests need no DOM. */
export interface Heard {
  /** The field's text. */
  readonly value: string;
}

export type Listener<M = Message> = (heard: Heard) => M;

/** An element as a plain value. A key keeps its DOM element, and so its focus and scroll, through moves. */
export interface Element<M = Message> {
  readonly tag: string;
  readonly key: string | undefined;
  readonly attributes: { readonly [name: string]: string | number | boolean | undefined };
  readonly on: { readonly [event: string]: Listener<M> };
  readonly children: readonly Node<M>[];
}

/** Text is data: it only ever becomes a text node. */
export type Node<M = Message> = Element<M> | string;

export type Child<M = Message> = Node<M> | undefined | false;

interface Properties<M> {
  readonly key?: string;
  readonly on?: { readonly [event: string]: Listener<M> };
  readonly [attribute: string]: string | number | boolean | undefined | { readonly [event: string]: Listener<M> };
}

/** Makes an element of a page with messages `M`; absent children are left out. */
export function element<M>(tag: string, properties: Properties<M> = {}, ...children: readonly Child<M>[]): Element<M> {
  const attributes: { [name: string]: string | number | boolean | undefined } = {};
  for (const [name, value] of Object.entries(properties)) {
    if (name !== "key" && typeof value !== "object") attributes[name] = value;
  }
  return {
    tag,
    key: properties.key,
    attributes,
    on: properties.on ?? {},
    children: children.filter((child): child is Node<M> => child !== undefined && child !== false),
  };
}

/** The same for this page's messages. */
export const h = element<Message>;

/** All the text of a view, in order: what a test or a screen reader finds in it. */
export function textOf<M>(node: Node<M>): string {
  return typeof node === "string" ? node : node.children.map((child) => textOf(child)).join(" ");
}
