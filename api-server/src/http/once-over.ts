import type { FastifyReply, FastifyRequest } from "fastify";

/**
 * Calls back once, when the whole answer has been written to the client's connection, or the client has disconnected. An answer behind
 * another on one connection has no events of its own when the connection breaks: so the connection's count, too.
 */
export function onceOver(request: FastifyRequest, reply: FastifyReply, then: () => void): void {
  const { socket } = request.raw;
  const over = (): void => {
    reply.raw.off("close", over).off("finish", over);
    socket?.off("close", over);
    then();
  };
  reply.raw.once("close", over).once("finish", over);
  socket?.once("close", over);
  if (socket?.destroyed || reply.raw.destroyed) {
    over();
  }
}
