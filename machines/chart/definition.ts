import { conversationMachine } from "../conversation.js";

/**
 * The machine's own definition as JSON: what `createMachine` takes, and so what Stately's tools open. Guards and actions
 * are names in it. The context is made from a conversation and is left out.
 */
export const definitionJson = (): string => `${JSON.stringify(conversationMachine.config, null, 2)}\n`;
