import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startDnsServer, type TestDnsServer } from "../../../test/kit/operator/dns-server.ts";
import { createTxtLookup, type TxtLookup } from "./ownership.ts";

let server: TestDnsServer;
let lookup: TxtLookup;
beforeAll(async () => {
  server = await startDnsServer();
  lookup = createTxtLookup({ servers: [server.address], timeoutMs: 200, tries: 2 });
});
beforeEach(() => {
  server.failure = undefined;
});
afterAll(() => server.stop());

describe("a TXT look-up", () => {
  test("returns every record, with its strings joined", async () => {
    server.records.set("one.example", [["slipway-", "verification=", "ab"], ["v=spf1 -all"]]);
    expect(await lookup("one.example")).toEqual({ records: ["slipway-verification=ab", "v=spf1 -all"] });
  });

  test("finds none under a name that does not exist, and none under one without such records", async () => {
    server.records.set("empty.example", []);
    expect(await lookup("missing.example")).toEqual({ records: [] });
    expect(await lookup("empty.example")).toEqual({ records: [] });
  });

  test("queries each time", async () => {
    server.records.set("changing.example", [["before"]]);
    expect(await lookup("changing.example")).toEqual({ records: ["before"] });
    server.records.set("changing.example", [["after"]]);
    expect(await lookup("changing.example")).toEqual({ records: ["after"] });
  });

  test("fails when the server fails, is silent, or does not exist", async () => {
    server.failure = "servfail";
    expect(await lookup("one.example")).toEqual({ failed: true });
    server.failure = "silent";
    expect(await lookup("one.example")).toEqual({ failed: true });
    const stopped = await startDnsServer();
    await stopped.stop();
    expect(await createTxtLookup({ servers: [stopped.address], timeoutMs: 200 })("one.example")).toEqual({
      failed: true,
    });
  });

  test("queries the next server when the first is silent", async () => {
    const silent = await startDnsServer();
    silent.failure = "silent";
    try {
      const servers = [silent.address, server.address];
      const found = await createTxtLookup({ servers, timeoutMs: 200, tries: 2 })("one.example");
      expect(found).toMatchObject({ records: expect.arrayContaining(["v=spf1 -all"]) });
    } finally {
      await silent.stop();
    }
  });

  test("ends at its limit, however long servers are waited for", async () => {
    server.failure = "silent";
    const started = performance.now();
    const patient = createTxtLookup({ servers: [server.address], timeoutMs: 60_000, limitMs: 300 });
    expect(await patient("one.example")).toEqual({ failed: true });
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
