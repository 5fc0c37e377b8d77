import { randomBytes, randomUUID } from "node:crypto";

/** What the service takes from the world besides files and sockets; tests bring their own. */
export interface Environment {
  /** Now, in milliseconds since the epoch. */
  now(): number;
  uuid(): string;
  /** 256 random bits, base64url. */
  secret(): string;
  /** Runs `task` after `ms` milliseconds; the returned function calls it off. Does not keep the process alive. */
  after(ms: number, task: () => void): () => void;
}

export const realEnvironment: Environment = {
  now: Date.now,
  uuid: randomUUID,
  secret: () => randomBytes(32).toString("base64url"),
  after: (ms, task) => {
    const timer = setTimeout(task, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** The moment as the protocol writes it: RFC 3339 in UTC. */
export const timestamp = (environment: Pick<Environment, "now">): string => new Date(environment.now()).toISOString();
