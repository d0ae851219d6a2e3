import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answers, Tally } from "./attack.ts";

/** What happens on each of many connections to the API. */
export interface ConnectionsOptions {
  readonly url: string;
  readonly count: number;
  /** Connections opened in a second. */
  readonly perSecond: number;
  /** Sent as soon as it is open; nothing when absent. */
  readonly first?: (index: number) => Iterable<string | Buffer>;
  /** Sent again and again, so that the connection is not idle. */
  readonly drip?: { readonly everyMs: number; readonly bytes: string };
  /** False leaves answers in the socket's buffers: a client that does not read. */
  readonly reads?: false;
}

/** An answer that never came: the connection was ended by the other side, or was open until the attack's end. */
export const closed = "closed without an answer";
export const open = "open until the end";

const statusOf = (data: Buffer): string | undefined =>
  /^HTTP\/1\.[01] ([0-9]{3})/.exec(data.toString("latin1", 0, 16))?.[1];

/** Opens connections, and counts for each its first answer, or that it had none. Ends all of them with the signal. */
export async function connections(options: ConnectionsOptions, signal: AbortSignal): Promise<Answers> {
  const { hostname, port } = new URL(options.url);
  if (hostname !== "127.0.0.1") {
    throw new Error("only 127.0.0.1 is attacked");
  }
  const tally = new Tally();
  const sockets: Promise<void>[] = [];
  for (let index = 0; index < options.count && !signal.aborted; index += 1) {
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(follow(socket, index, options, tally, signal));
    if (index % 10 === 9) {
      await sleep(10_000 / options.perSecond, undefined, { signal }).catch(() => undefined);
    }
  }
  await Promise.all(sockets);
  return tally.answers();
}

function follow(
  socket: Socket,
  index: number,
  { first, drip, reads }: ConnectionsOptions,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    let answer: string | undefined;
    let dripping: NodeJS.Timeout | undefined;
    const abort = (): void => {
      answer ??= open;
      socket.destroy();
    };
    signal.addEventListener("abort", abort, { once: true });
    socket.on("error", () => undefined);
    socket.on("connect", () => {
      for (const bytes of first?.(index) ?? []) {
        socket.write(bytes);
      }
      if (drip) {
        dripping = setInterval(() => socket.write(drip.bytes), drip.everyMs);
      }
    });
    if (reads !== false) {
      socket.on("data", (data) => {
        answer ??= statusOf(data);
        if (drip && answer !== undefined) {
          socket.destroy();
        }
      });
    }
    socket.on("close", () => {
      clearInterval(dripping);
      signal.removeEventListener("abort", abort);
      tally.add(answer ?? closed);
      resolve();
    });
    if (signal.aborted) {
      abort();
    }
  });
}
