import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Question, QuestionResult } from "../../protocol/question.js";
import { BINARY } from "../service-process.js";
import { ServedWorld } from "../terminal/world.js";
import { launch, openViewer, type Viewer } from "./viewer.js";

interface Context {
  served: ServedWorld;
  browser: Browser;
}

const ROUNDS = 5;

const race = suite<Context>("one question on every kind of client at once");

race.before(async (context) => {
  context.served = await ServedWorld.start();
  context.browser = await launch();
});

race.after(async ({ browser, served }) => {
  await browser?.close();
  await served?.end();
});

/** The answers a page has sent, as they left the browser. */
async function framesOf(viewer: Viewer): Promise<readonly string[]> {
  const frames: string[] = [];
  const client = await viewer.context.newCDPSession(viewer.page);
  await client.send("Network.enable");
  client.on("Network.webSocketFrameSent", ({ response }) => {
    if (response.payloadData.includes("input_answer")) frames.push(response.payloadData);
  });
  return frames;
}

/** The command line, started and waiting for the answer on its standard input. */
function commandLine(served: ServedWorld, question: Question, revision: number) {
  const { conversationId, requestId, incarnationId } = question;
  const target = [conversationId, requestId, "--incarnation", incarnationId, "--revision", String(revision)];
  const child = spawn(process.execPath, [BINARY, "conversations", "answer", ...target, "--stdin", "--json"], {
    env: { ...process.env, HOME: served.home, CLANKIE_URL: served.url, CLANKIE_TOKEN: served.token },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const done = Promise.all([text(child.stdout), once(child, "exit")]);
  return {
    send: () => child.stdin.end("from the command line"),
    result: async () => JSON.parse((await done)[0]) as QuestionResult,
  };
}

race(
  "[6.9] terminal, page, second device and command line answer together: one is stored, all show it",
  async (context) => {
    const { served, browser } = context;
    const operator = await served.link();
    const conversationId = await served.conversation(operator);
    const credential = await operator.call("credential_issue", { kind: "agent", conversationId });
    const agent = await served.link(credential.token);
    const screen = served.tui([conversationId], { columns: 100, rows: 40 });
    await screen.shows("connected");
    const pages = await Promise.all(
      ["first", "second"].map(async (name) => {
        const viewer = await openViewer(browser, served.url);
        await viewer.pair((await operator.call("device_pair_begin", { mode: "active" })).code, name);
        return { name, viewer, frames: await framesOf(viewer) };
      }),
    );

    for (let round = 1; round <= ROUNDS; round += 1) {
      const prompt = `Round ${round}?`;
      const { question } = await agent.call("request_user_input", { conversationId, kind: "text", prompt });
      if (question === undefined) throw new Error("nothing was asked");
      const { requestId } = question;
      const { revision = -1 } = await operator.call("input_get", { conversationId, requestId });
      const cli = commandLine(served, question, revision);
      await screen.shows("A question waits");
      await screen.line("/question");
      await screen.shows(prompt);
      for (const { name, viewer } of pages) {
        await viewer.open({ conversationId }, question);
        await viewer.page.getByLabel("Your answer").fill(`from the ${name} page`);
        await viewer.page.locator("[data-moved]").first().waitFor({ state: "detached" });
      }
      screen.send("/question text from the terminal");
      await screen.shows("text from the terminal");

      // whoever is asked first is not always the first to answer
      const all = [
        () => cli.send(),
        () => screen.send("\r"),
        ...pages.map(
          ({ viewer }) =>
            () =>
              viewer.page.getByRole("button", { name: "Send answer" }).click({ timeout: 3_000 }),
        ),
      ];
      const from = round % all.length;
      const clicks = [...all.slice(from), ...all.slice(0, from)].map((send) => send());
      // who has lost before its press finds no button any more
      await Promise.all(clicks.map((click) => Promise.resolve(click).catch(() => turn())));

      const { question: receipt } = await cli.result();
      assert.is(receipt?.status, "submitted");
      if (receipt?.answer?.kind !== "text") throw new Error("no text was stored");
      const { answer } = receipt;
      for (const { viewer } of pages) {
        await viewer.page.getByRole("heading", { name: /Answer stored|Answered elsewhere/ }).waitFor();
        assert.is((await viewer.page.locator(".answer-words").allTextContents()).join(), answer.text);
      }
      await screen.shows(answer.text);
      const { question: stored } = await operator.call("input_get", { conversationId, requestId });
      assert.equal(stored?.answer, answer);
      assert.is(stored?.continuation?.runId, receipt.continuation?.runId);
      for (const { frames } of pages) {
        const own = frames.filter((frame) => frame.includes(requestId));
        assert.ok(own.length <= 1, "none is sent twice");
      }
      // the continuation is for the agent to end, so that the next round starts alike
      const runId = receipt.continuation?.runId ?? "";
      await agent.call("run_claim", { runId });
      await agent.call("run_settle", { runId, state: "completed" });
    }
    for (const { viewer } of pages) {
      assert.equal(viewer.faults, []);
      await viewer.close();
    }
    screen.kill();
  },
);

race.run();
