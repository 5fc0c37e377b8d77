import { safeText } from "../text.js";
import { questionFragment } from "./route.js";
import type { NotificationState } from "./state.js";

/** Whether questions can be announced while the page is out of view, given what the person wished for. */
export function notificationState(wish: boolean): NotificationState {
  if (!("Notification" in globalThis) || !isSecureContext) return "unsupported";
  switch (Notification.permission) {
    case "granted":
      return wish ? "on" : "off";
    case "denied":
      return "denied";
    case "default":
      return "off";
    default:
      return Notification.permission satisfies never;
  }
}

/** Asks the person, after a press of theirs. */
export async function askToNotify(): Promise<NotificationState> {
  const permission = await Notification.requestPermission();
  return permission === "granted" ? "on" : permission === "denied" ? "denied" : "off";
}

interface Arrival {
  readonly requestId: string;
  readonly conversationId: string;
  readonly title: string;
  readonly prompt: string;
}

/** Notifies through the service worker where there is one, so that it works for an installed page too. */
export async function notify({ requestId, conversationId, title, prompt }: Arrival): Promise<void> {
  const options = {
    body: safeText(prompt).slice(0, 200),
    tag: requestId,
    icon: "/icon-192.png",
    data: { fragment: questionFragment(conversationId, requestId) },
  };
  const worker = await registration();
  if (worker !== undefined) return worker.showNotification(safeText(title), options);
  const notification = new Notification(safeText(title), options);
  notification.onclick = () => {
    focus();
    location.hash = options.data.fragment;
    notification.close();
  };
}

/** Takes a notification back: its question no longer waits. */
export async function withdraw(requestId: string): Promise<void> {
  const worker = await registration();
  for (const notification of (await worker?.getNotifications({ tag: requestId })) ?? []) notification.close();
}

async function registration(): Promise<ServiceWorkerRegistration | undefined> {
  if (!("serviceWorker" in navigator)) return undefined;
  const found = await navigator.serviceWorker.getRegistration("/").catch(() => undefined);
  return found?.active === null ? undefined : found;
}
