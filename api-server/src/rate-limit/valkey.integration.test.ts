import { createClient } from "@redis/client";
import { createLogger } from "@slipway/process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { TcpProxy } from "../../../test/kit/processes/tcp-proxy.ts";
import { startValkey, type TestValkey } from "../../../test/kit/servers/valkey.ts";
import type { Decision } from "./limiter.ts";
import { ValkeyRateLimiter, type ValkeyRateLimiterOptions } from "./valkey.ts";

/** The shared rate limiter over the stack's own Valkey image. */

let valkey: TestValkey;
const limiters: ValkeyRateLimiter[] = [];

beforeAll(async () => {
  valkey = await startValkey();
});
afterEach(() => Promise.all(limiters.splice(0).map((limiter) => limiter.close())));
afterAll(() => valkey?.stop());

interface Replica {
  limiter: ValkeyRateLimiter;
  logged: () => string[];
  inMemory: () => number;
}

async function replica(options: Partial<ValkeyRateLimiterOptions> = {}): Promise<Replica> {
  const lines: string[] = [];
  let inMemory = 0;
  const limiter = new ValkeyRateLimiter({
    url: valkey.url,
    logger: createLogger("api-server", "info", { write: (line: string) => void lines.push(line) }),
    onMemory: () => {
      inMemory += 1;
    },
    ...options,
  });
  limiters.push(limiter);
  await limiter.start();
  return {
    limiter,
    logged: () => lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
    inMemory: () => inMemory,
  };
}

let buckets = 0;
const newBucket = () => `test ${process.pid} ${++buckets}`;
const allowed = (decisions: readonly Decision[]) => decisions.filter((decision) => decision.allowed).length;
/** `calls` calls of each limiter, all concurrently. */
const storm = (replicas: readonly Replica[], bucket: string, calls: number, limit: number) =>
  Promise.all(
    Array.from({ length: calls * replicas.length }, async (_, index) =>
      (replicas[index % replicas.length] as Replica).limiter.take(bucket, limit, 60),
    ),
  );

describe("limits over replicas", () => {
  // Shows: docs/applications.md#limits: exact over all replicas
  it("admit exactly the limit of many concurrent calls, and count down to zero", async () => {
    const replicas = [await replica(), await replica()];
    const decisions = await storm(replicas, newBucket(), 500, 137);
    expect(allowed(decisions)).toBe(137);
    const left = decisions.filter((decision) => decision.allowed).map(({ remaining }) => remaining);
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 137 }, (_, index) => index));
    expect(decisions.every(({ resetSeconds }) => resetSeconds >= 59 && resetSeconds <= 60)).toBe(true);
    expect(replicas.map(({ inMemory }) => inMemory())).toEqual([0, 0]);
  });

  it("begin again when the window that the first call began has ended, and leave nothing behind", async () => {
    const [one, two] = [await replica(), await replica()];
    const bucket = newBucket();
    expect(await one.limiter.take(bucket, 1, 1)).toMatchObject({ allowed: true, resetSeconds: 1 });
    expect(await two.limiter.take(bucket, 1, 1)).toMatchObject({ allowed: false, remaining: 0 });
    await eventually("the next window", async () => (await two.limiter.take(bucket, 1, 1)).allowed);
    expect(await one.limiter.take(bucket, 1, 1)).toMatchObject({ allowed: false });
    const client = await createClient({ url: valkey.url.replace("valkey:", "redis:") }).connect();
    await eventually("no key of it", async () => (await client.keys(`*${bucket}`)).length === 0 || undefined);
    client.destroy();
  });

  it("count a call less that is given back, over all replicas", async () => {
    const [one, two] = [await replica(), await replica()];
    const bucket = newBucket();
    await one.limiter.giveBack(bucket);
    expect(await one.limiter.take(bucket, 1, 60)).toMatchObject({ allowed: true });
    await two.limiter.giveBack(bucket);
    expect(await one.limiter.take(bucket, 1, 60)).toMatchObject({ allowed: true });
    expect(await two.limiter.take(bucket, 1, 60)).toMatchObject({ allowed: false });
  });

  it("keep buckets with long names apart, and under keys of bounded length", async () => {
    const { limiter } = await replica();
    const long = `${newBucket()} ${"x".repeat(10_000)}`;
    expect(await limiter.take(`${long}a`, 1, 60)).toMatchObject({ allowed: true });
    expect(await limiter.take(`${long}a`, 1, 60)).toMatchObject({ allowed: false });
    expect(await limiter.take(`${long}b`, 1, 60)).toMatchObject({ allowed: true });
  });

  it("continue when the script cache is flushed", async () => {
    const { limiter, inMemory } = await replica();
    const client = await createClient({ url: valkey.url.replace("valkey:", "redis:") }).connect();
    await client.scriptFlush();
    client.destroy();
    expect(await limiter.take(newBucket(), 1, 60)).toMatchObject({ allowed: true });
    expect(inMemory()).toBe(0);
  });
});

describe("newest writes", () => {
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: what was written of runs through one replica is
  it("come back with the next decision about that organization, the newest alone, on every replica", async () => {
    const [one, two] = [await replica(), await replica()];
    const newestWrite = async (organization: string) =>
      (await two.limiter.take(newBucket(), 10, 60, organization)).newestWrite;
    expect(await newestWrite("acme")).toBeUndefined();
    await one.limiter.publish("acme", "99");
    expect(await newestWrite("acme")).toBe("99");
    await one.limiter.publish("acme", "100");
    await two.limiter.publish("acme", "98");
    expect(await newestWrite("acme")).toBe("100");
    await one.limiter.publish("acme", "12345678901234567891");
    await one.limiter.publish("acme", "12345678901234567890");
    expect(await newestWrite("acme")).toBe("12345678901234567891");
    expect(await newestWrite("other")).toBeUndefined();
    // Versions of runs are apart from those of projects.
    await one.limiter.publish("acme", "7", "jobRuns");
    await one.limiter.publish("other", "8", "jobRuns");
    const decision = await two.limiter.take(newBucket(), 10, 60, "acme");
    expect(decision).toMatchObject({ newestWrite: "12345678901234567891", newestRun: "7" });
    expect(await newestWrite("other")).toBeUndefined();
  });
});

describe("an outage", () => {
  // Shows: docs/applications.md#limits: without the shared store: counted in memory, and exact again
  it("is bridged in memory, reported once, and followed by exact limits again", async () => {
    const replicas = [await replica(), await replica()];
    const [one] = replicas as [Replica];
    await valkey.crash();
    try {
      const bucket = newBucket();
      const decisions = await storm([one], bucket, 100, 30);
      expect(allowed(decisions)).toBe(30);
      expect(one.inMemory()).toBe(100);
      await one.limiter.publish("acme", "1");
      expect(one.limiter.isShared).toBe(false);
      // No call waits for what is unavailable: these are answered without a promise.
      expect(one.limiter.take(bucket, 30, 60)).not.toBeInstanceOf(Promise);
    } finally {
      await valkey.restart();
    }
    await eventually("both to be back", () => replicas.every(({ limiter }) => limiter.isShared), 10_000);
    expect(allowed(await storm(replicas, newBucket(), 200, 50))).toBe(50);
    expect(one.logged()).toEqual(["valkey is away: rate limits are counted in memory", "valkey is back"]);
  });

  it("in which connections stay open and nothing answers costs one short wait for all calls", async () => {
    const proxy = new TcpProxy({ host: "127.0.0.1", port: valkey.port });
    await proxy.up();
    const url = valkey.url.replace(`:${valkey.port}`, `:${proxy.port}`);
    const one = await replica({ url, timeoutMs: 250 });
    proxy.stall(true);
    const began = performance.now();
    const bucket = newBucket();
    expect(allowed(await storm([one], bucket, 50, 20))).toBe(20);
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(one.inMemory()).toBe(50);
    expect(one.limiter.take(bucket, 20, 60)).toMatchObject({ allowed: false });
    proxy.stall(false);
    await eventually("it to be back", () => one.limiter.isShared, 10_000);
    expect(one.logged()).toHaveLength(2);
    await one.limiter.close();
    await proxy.down();
  });

  it("at the start does not stop the process from starting, and ends automatically", async () => {
    await valkey.crash();
    let one: Replica;
    try {
      one = await replica();
      expect(one.limiter.take(newBucket(), 1, 60)).toMatchObject({ allowed: true });
    } finally {
      await valkey.restart();
    }
    await eventually("it to be there", () => one.limiter.isShared, 10_000);
  });

  it("is also a server that answers errors alone: it is not tried with every call", async () => {
    const two = await replica({ url: valkey.url.replace("a-password", "wrong") });
    expect(two.limiter.isShared).toBe(false);
    expect(allowed(await storm([two], newBucket(), 10, 3))).toBe(3);
    expect(two.logged()).toEqual(["valkey is away: rate limits are counted in memory"]);
  });

  it("does not hide a full server behind its readiness to answer pings", async () => {
    const one = await replica();
    const client = await createClient({ url: valkey.url.replace("valkey:", "redis:") }).connect();
    await client.configSet("maxmemory", "1");
    expect(await one.limiter.take(newBucket(), 1, 60)).toMatchObject({ allowed: true });
    expect(one.limiter.isShared).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(one.limiter.isShared).toBe(false);
    await client.configSet("maxmemory", "0");
    client.destroy();
    await eventually("it to be back", () => one.limiter.isShared, 10_000);
  });
});
