import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";

/** What a handler answers. `json` is serialised already, `body` is not; `content` and `stream` say their type in `headers`. */
export type Answer =
  | { status: number; body: Record<string, unknown>; headers?: Record<string, string> }
  | { status: number; json: string; headers?: Record<string, string> }
  | { status: number; content: string | Buffer; headers: Record<string, string> }
  | { status: number; stream: Readable; headers: Record<string, string> };

/** What runs before a handler, and calls back when it is done. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;
