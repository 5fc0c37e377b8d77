import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy before the service that a test can stop in the middle. */
export interface TcpProxy {
  readonly url: string;
  /** What the service says from now on is held back; what the client says still arrives. */
  holdReplies(): void;
  /** What the client says from now on is dropped. */
  dropRequests(): void;
  /** Ends every connection, and lets nobody in until `restore`. */
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let [holds, drops, isCut] = [false, false, false];
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const service = connect(Number(port), hostname);
    for (const socket of [client, service]) {
      open.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => open.delete(socket));
    }
    client.on("data", (data) => {
      if (!drops) service.write(data);
    });
    service.on("data", (data) => {
      if (!holds) client.write(data);
    });
    client.on("close", () => service.destroy());
    service.on("close", () => client.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cut = (): void => {
    isCut = true;
    for (const socket of open) socket.destroy();
  };
  return {
    url,
    holdReplies() {
      holds = true;
    },
    dropRequests() {
      drops = true;
    },
    cut,
    restore() {
      [holds, drops, isCut] = [false, false, false];
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
