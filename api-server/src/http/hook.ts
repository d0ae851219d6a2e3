import type { FastifyReply, FastifyRequest } from "fastify";

/** What runs before a handler, and calls back when it is done. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;
