import { expect, it } from "vitest";
import { startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";

const LIFETIME_MS = 2_000;

it("ends the stream of a token that expires, within seconds, and refuses a new one", async () => {
  let expiresAt = 0;
  const verifier = {
    verify: async () => (Date.now() < expiresAt ? { userId: "ada", expiresAt } : undefined),
  };
  const harness = await startFakeHarness({ verifier });
  try {
    await harness.project("acme", "shop");
    harness.member("ada", "acme", "member", "project.logs.read on project:*");
    const base = await harness.app.listen({ port: 0, host: "127.0.0.1" });
    const follow = (headers: Record<string, string>) =>
      fetch(`${base}/v1/project/shop/logs?follow=true`, { headers });
    const key = harness.key("acme", "project.logs.read on project:*");
    const client = new AbortController();
    const others = await fetch(`${base}/v1/project/shop/logs?follow=true`, {
      headers: key,
      signal: client.signal,
    });

    expiresAt = Date.now() + LIFETIME_MS;
    const token = { authorization: "Bearer of.an.issuer", "x-organization-id": "acme" };
    const stream = await follow(token);
    expect([stream.status, stream.headers.get("content-type")]).toEqual([
      200,
      expect.stringContaining("text/event-stream"),
    ]);
    let endedAt = 0;
    void stream.text().then(() => {
      endedAt = Date.now();
    });
    await eventually("the end of the stream", () => endedAt > 0);
    expect(endedAt).toBeGreaterThanOrEqual(expiresAt);
    expect(endedAt - expiresAt).toBeLessThan(5_000);
    expect((await follow(token)).status).toBe(401);
    // Another caller's continues.
    expect(harness.services.builds.streams.size).toBe(1);
    expect(others.status).toBe(200);
    client.abort();
  } finally {
    harness.app.server.closeAllConnections();
    await harness.close();
  }
});
