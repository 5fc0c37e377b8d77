import { WebSocket } from "ws";
import { BOUNDS } from "../../protocol/bounds.js";
import { SUBPROTOCOL } from "../../protocol/frames.js";
import { CLOSED_UNAUTHENTICATED, type Connector, type Ending } from "./transport.js";

/** WebSockets of Node, by `ws`: the token goes into the `Authorization` header. */
export const nodeConnector: Connector = {
  sendsTokenOnUpgrade: true,
  seesPings: true,
  open(url, token, events) {
    const socket = new WebSocket(url, [SUBPROTOCOL], {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      maxPayload: BOUNDS.frameToClient,
      perMessageDeflate: false,
      followRedirects: false,
    });
    let detail = "the connection was closed";
    let ended = false;
    const end = (ending: Ending): void => {
      if (ended) return;
      ended = true;
      events.ended(ending);
    };
    socket.on("open", () => events.opened());
    socket.on("message", (data, isBinary) => {
      if (!ended) events.message(isBinary || !Buffer.isBuffer(data) ? undefined : data.toString("utf8"));
    });
    socket.on("ping", () => events.alive());
    socket.on("unexpected-response", (request, response) => {
      request.destroy();
      end(refusedUpgrade(response.statusCode));
    });
    socket.on("error", (error) => {
      detail = error.message === "" ? String(("code" in error && error.code) || error.name) : error.message;
      // without a connection there is no close event before this one
      if (socket.readyState === WebSocket.CONNECTING) end({ kind: "lost", detail });
    });
    socket.on("close", (code) =>
      end(code === CLOSED_UNAUTHENTICATED ? { kind: "refused", reason: "unauthenticated" } : { kind: "lost", detail }),
    );
    return { send: (text) => socket.send(text), drop: () => socket.terminate() };
  },
};

function refusedUpgrade(status: number | undefined): Ending {
  switch (status) {
    case 401:
      return { kind: "refused", reason: "unauthenticated" };
    case 403:
      return { kind: "refused", reason: "forbidden" };
    default:
      return { kind: "lost", detail: `HTTP status ${status} instead of a socket` };
  }
}
