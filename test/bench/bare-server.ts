import { readFileSync } from "node:fs";
import { collectProcessMetrics } from "@slipway/process";
import { fastify } from "fastify";
import { Registry } from "prom-client";

/** The least that Fastify can be: answers one JSON object, and the figures of its process. What the API server's reads are measured against. */
const [file, port] = process.argv.slice(2);
if (!file || !port) {
  throw new Error("usage: bare-server.ts FILE PORT");
}
const answer: unknown = JSON.parse(readFileSync(file, "utf8"));
const registry = new Registry();
collectProcessMetrics(registry);
const app = fastify();
app.get("/v1/project/:id", (_request, reply) => reply.send(answer));
app.get("/metrics", () => registry.metrics());
await app.listen({ host: "127.0.0.1", port: Number(port) });
