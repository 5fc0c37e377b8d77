import { type Element, element as make } from "../html.js";

const TOKEN = /<(\/?)([a-zA-Z]+)((?:\s+[a-zA-Z-]+="[^"<>]*")*)\s*(\/?)>|([^<]+)/g;
const ATTRIBUTE = /([a-zA-Z-]+)="([^"<>]*)"/g;
const ENTITIES: { readonly [entity: string]: string } = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"' };

const unescaped = (text: string): string => text.replace(/&(amp|lt|gt|quot);/g, (entity) => ENTITIES[entity] ?? entity);

/** The chart's own SVG as a view, so that it is drawn like the rest of the page: no markup is ever set on the document. */
export function viewOf<M>(markup: string): Element<M> {
  const open: { tag: string; attributes: { [name: string]: string }; children: (Element<M> | string)[] }[] = [];
  let root: Element<M> | undefined;
  const close = (): void => {
    const { tag, attributes, children } = open.pop() ?? { tag: "g", attributes: {}, children: [] };
    const element = make<M>(tag, attributes, ...children);
    const parent = open.at(-1);
    if (parent === undefined) root = element;
    else parent.children.push(element);
  };
  for (const [, end, tag, attributes, empty, text] of markup.matchAll(TOKEN)) {
    if (text !== undefined) {
      if (text.trim() !== "") open.at(-1)?.children.push(unescaped(text));
    } else if (end === "/") close();
    else {
      const pairs = [...(attributes ?? "").matchAll(ATTRIBUTE)].map(([, name, value]) => [
        name,
        unescaped(value ?? ""),
      ]);
      open.push({ tag: tag ?? "g", attributes: Object.fromEntries(pairs), children: [] });
      if (empty === "/") close();
    }
  }
  if (root === undefined || open.length > 0) throw new Error("the chart's markup is not well-formed");
  return root;
}
