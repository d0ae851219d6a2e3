import type { FastifyReply, FastifyRequest } from "fastify";
import { Gate, type Leave } from "./gate.ts";

/** Bytes of a body that needs no place; also the largest of a route that does not say otherwise. */
export const SMALL_BODY = 1024 * 1024;

/** The gate of a process: a large body costs many times its bytes until it is answered. */
export const largeBodyGate = (): Gate => new Gate({ atOnce: 4, waiting: 16, waitMs: 2_000 });

type Hook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;

/** Whether so much may come that it needs a place. More than `limit` bytes are refused without being read. */
function isLarge({ headers }: FastifyRequest, limit: number): boolean {
  if (headers["transfer-encoding"] !== undefined) return true;
  const bytes = Number(headers["content-length"] ?? 0);
  return bytes > SMALL_BODY && bytes <= limit;
}

/**
 * Takes a place for a large body before it is read. The place is held until the handler is done ({@link inPlace}), or
 * until the answer is out or the client gone where no handler ran.
 */
export function awaitPlace(gate: Gate, limit: number): Hook {
  return (request, reply, done) => {
    if (!isLarge(request, limit)) return done();
    gate.enter().then((leave) => {
      const { socket } = request.raw;
      // Gone while it waited: nothing is read, and nobody to be answered.
      if (socket?.destroyed) return leave();
      const end = (): void => {
        reply.raw.off("close", gone).off("finish", gone);
        socket?.off("close", gone);
        leave();
      };
      const gone = (): void => {
        if (request.bodyPlace?.handled !== true) end();
      };
      // An answer behind another on one connection has no events of its own when the connection breaks.
      reply.raw.once("close", gone).once("finish", gone);
      socket?.once("close", gone);
      request.bodyPlace = { handled: false, leave: end };
      done();
    }, done);
  };
}

/** The place of a request's body. */
export interface BodyPlace {
  /** Whether the handler has it, and leaves when it is done. */
  handled: boolean;
  leave: Leave;
}

/** Runs a handler, and leaves the request's place after it: also when the client has gone, since the work goes on. */
export async function inPlace<T>(place: BodyPlace, work: () => T | Promise<T>): Promise<T> {
  place.handled = true;
  try {
    return await work();
  } finally {
    place.leave();
  }
}
