import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { signedHeaders } from "@slipway/process";
import { afterEach, expect, test } from "vitest";
import {
  type FakeHarness,
  type HarnessOptions,
  startFakeHarness,
} from "../../../test/kit/api-server/harness.ts";

/** What others send keeps no payment from being received, nor the other way round. */

const SECRET = `whsec_${Buffer.alloc(32, "k").toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, "o").toString("base64")}`;
const PATH = "/v1/payment-webhooks/generic";

let harness: FakeHarness;
afterEach(() => harness.close());

async function start(options: HarnessOptions = {}): Promise<number> {
  harness = await startFakeHarness({ ...options, payments: { generic: () => [SECRET] } });
  await harness.app.listen({ port: 0, host: "127.0.0.1" });
  return (harness.app.server.address() as { port: number }).port;
}

/** Sends an event of no payment, so that no ledger is needed. */
async function send(port: number, secret: string): Promise<number> {
  const payload = JSON.stringify({ type: "payment.pending" });
  const headers = signedHeaders({ id: "evt", at: new Date(), payload }, [secret]);
  const answer = await fetch(`http://127.0.0.1:${port}${PATH}`, { method: "POST", headers, body: payload });
  await answer.body?.cancel();
  return answer.status;
}

// Shows: docs/invoices.md#payment-webhooks: an address has 600 calls a minute of each form
// Shows: docs/invoices.md#payment-webhooks: 413, 429
test("calls that are signed do not count against the limit, and others do", async () => {
  // Three calls a minute.
  const port = await start({ rateLimitScale: 0.005 });
  const statuses: number[] = [];
  for (const secret of [SECRET, SECRET, SECRET, SECRET, OTHER, SECRET, OTHER, OTHER, OTHER]) {
    statuses.push(await send(port, secret));
  }
  expect(statuses).toEqual([200, 200, 200, 200, 401, 200, 401, 401, 429]);
  const url = `http://127.0.0.1:${port}${PATH}`;
  const refused = async (body: string) => (await fetch(url, { method: "POST", body })).json();
  expect(await refused("{}")).toMatchObject({ code: "RATE_LIMIT_EXCEEDED" });
});

// Shows: docs/invoices.md#payment-webhooks: 413, 429
test("a body that is too large is refused before it is read", async () => {
  const port = await start();
  const answer = await fetch(`http://127.0.0.1:${port}${PATH}`, {
    method: "POST",
    body: "x".repeat(2 ** 20),
  });
  expect([answer.status, await answer.json()]).toMatchObject([413, { code: "BODY_TOO_LARGE" }]);
});

test("slow bodies of payments leave the memory for bodies of others", async () => {
  const port = await start();
  const slow: Socket[] = [];
  try {
    // As many as one address may have under way.
    while (slow.length < 16) {
      const socket = connect(port, "127.0.0.1");
      slow.push(socket);
      socket.on("error", () => {});
      await once(socket, "connect");
      const seen = once(harness.app.server, "request");
      socket.write(`POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: ${256 * 1024}\r\n\r\n{`);
      await seen;
    }
    expect(await send(port, SECRET)).toBe(503);
    const other = await fetch(`http://127.0.0.1:${port}/registry/token`, { method: "POST", body: "a=b" });
    expect(other.status).toBe(400);
  } finally {
    for (const socket of slow) {
      socket.destroy();
    }
  }
});
