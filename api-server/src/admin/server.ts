import { createServer, type Server, type Socket } from "node:net";
import { ConcurrencyLimiter } from "@slipway/process";
import type { AdminResult } from "./program.ts";

/** Where the admin server listens, on loopback of its pod: only a port-forward into the pod reaches it. */
export const ADMIN_PORT = 8079;

/** Commands that run at the same time, those that wait for them, and how long, in milliseconds. */
const MAX_CONCURRENT = 16;
const WAITING = 1_000;
const WAIT_MS = 90_000;
/** Bytes of the longest request: a command's words as JSON. */
const REQUEST_LIMIT = 64 * 1024;
const LINE_FEED = 10;
/** A client sends its whole request within so many milliseconds. */
const REQUEST_MS = 30_000;

/** Runs a command, and returns what it printed. */
export type RunCommand = (words: readonly string[]) => Promise<AdminResult>;

/**
 * Serves admin commands, one a connection: the client sends `{"args":[...]}` and a line feed; the answer is an
 * {@link AdminResult} as one line of JSON, and the end of the connection. A connection that ends without an answer
 * leaves open whether the command was done; the audit log has its outcome.
 */
export function adminServer(run: RunCommand, onError: (error: Error) => void): Server {
  const limiter = new ConcurrencyLimiter({
    perKey: MAX_CONCURRENT,
    waiting: WAITING,
    waitMs: WAIT_MS,
    refuse: () => new Error("too many commands run at the same time: try again"),
  });
  const answer = async (words: readonly string[]): Promise<AdminResult> => {
    try {
      return await limiter.run("admin", () => run(words));
    } catch (error) {
      onError(error as Error);
      return { exitCode: 1, stdout: "", stderr: `slipway: failed: ${(error as Error).message}\n` };
    }
  };
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    void readRequest(socket).then(
      async (words) => socket.end(`${JSON.stringify(await answer(words))}\n`),
      () => socket.destroy(),
    );
  });
  server.maxConnections = MAX_CONCURRENT + WAITING;
  return server;
}

/** @throws Error when the request is too long, too late or no request */
async function readRequest(socket: Socket): Promise<string[]> {
  const line = await new Promise<string>((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    let isComplete = false;
    const timer = setTimeout(() => reject(new Error("no request in time")), REQUEST_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      reject(new Error("the connection ended"));
    });
    socket.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > REQUEST_LIMIT) {
        chunks = [];
        reject(new Error("the request is too long"));
        // Also while its command runs, whose answer then has no reader.
        socket.destroy();
        return;
      }
      // What follows the line feed is no part of the request; it is read on, so that the end of the connection is noticed.
      if (isComplete) {
        return;
      }
      chunks.push(chunk);
      const end = chunk.indexOf(LINE_FEED);
      if (end < 0) {
        return;
      }
      isComplete = true;
      clearTimeout(timer);
      resolve(Buffer.concat(chunks, size - chunk.length + end).toString("utf8"));
      chunks = [];
    });
  });
  const { args } = JSON.parse(line) as { args: unknown };
  if (!Array.isArray(args) || !args.every((word) => typeof word === "string")) {
    throw new Error("no words");
  }
  return args;
}
