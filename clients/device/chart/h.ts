import { type Element as AnyElement, element } from "../html.js";
import type { Message } from "./message.js";

/** The chart page's elements: the device page's, with this page's messages. */
export const h = element<Message>;
export type View = AnyElement<Message>;
