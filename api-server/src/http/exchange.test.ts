import { once } from "node:events";
import fastify from "fastify";
import { Pool } from "undici";
import { expect, it } from "vitest";
import { addressGroup, whileConnected } from "./exchange.ts";

it.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2:ffff::", "2001:db8:1:2::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["not an address: at all", "not an address: at all"],
])("%s counts as %s", (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

// Shows: docs/logs.md#over-v1: a search whose client has disconnected is cancelled
it("work is cancelled when its client disconnects, and leaves nothing at a connection that serves on", async () => {
  const app = fastify();
  const cancelled = Promise.withResolvers<void>();
  app.get("/", (request) =>
    whileConnected(request, async () => ({ listeners: request.raw.socket.listenerCount("close") })),
  );
  app.get("/endless", (request) =>
    whileConnected(request, async (signal) => {
      await once(signal, "abort");
      cancelled.resolve();
    }),
  );
  const pool = new Pool(await app.listen({ port: 0, host: "127.0.0.1" }), { connections: 1 });
  try {
    const get = async () => (await pool.request({ method: "GET", path: "/" })).body.json();
    expect(await get()).toEqual(await get());
    const leaving = new AbortController();
    const endless = pool.request({ method: "GET", path: "/endless", signal: leaving.signal });
    setTimeout(() => leaving.abort(), 50);
    await expect(endless).rejects.toThrow("abort");
    await cancelled.promise;
  } finally {
    await pool.destroy();
    await app.close();
  }
});
