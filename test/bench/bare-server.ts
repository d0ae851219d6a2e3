import { readFileSync } from "node:fs";
import { fastify } from "fastify";

/** The least that Fastify can be: answers one JSON object. What the API server's reads are measured against. */
const [file, port] = process.argv.slice(2);
if (!file || !port) {
  throw new Error("usage: bare-server.ts FILE PORT");
}
const answer: unknown = JSON.parse(readFileSync(file, "utf8"));
const app = fastify();
app.get("/v1/project/:id", (_request, reply) => reply.send(answer));
await app.listen({ host: "127.0.0.1", port: Number(port) });
