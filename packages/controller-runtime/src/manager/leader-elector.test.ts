import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { KubeClient } from "../client/client.ts";
import { resources } from "../client/resources.ts";
import { LeaderElector } from "./leader-elector.ts";
import type { Shard } from "./shards.ts";

const LEASES = "coordination.k8s.io/v1/leases";

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let abort: AbortController;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock();
  abort = new AbortController();
});

afterEach(async () => {
  abort.abort();
  await clock.advance(60_000);
  await client.close();
  await api.stop();
});

function candidate(identity: string, ownClock = clock, shard?: Shard): LeaderElector {
  return new LeaderElector({
    shard: shard && { ...shard, annotation: "test.dev/shards" },
    client,
    clock: ownClock,
    random: shard ? Math.random : () => 0,
    log: silentLogger,
    namespace: "a",
    name: "lock",
    identity,
  });
}

const spec = () =>
  api.etcd.get(LEASES, "a/lock").spec as { holderIdentity: string; leaseTransitions: number };

/** Moves time in steps, with time for real requests in each. */
async function pass(seconds: number, watch: () => boolean = () => false): Promise<number> {
  for (let step = 0; step < seconds * 2; step += 1) {
    await new Promise((resolve) => setTimeout(resolve, 8));
    if (watch()) {
      return step / 2;
    }
    await clock.advance(500);
  }
  return seconds;
}

describe("LeaderElector", () => {
  it("acquires a free lease immediately, and keeps it", async () => {
    const one = candidate("one");
    expect(await one.acquire(abort.signal)).toBe(true);
    expect([one.isLeader, spec().holderIdentity]).toEqual([true, "one"]);
    const holding = one.hold(abort.signal);
    await pass(30);
    expect(one.isLeader).toBe(true);
    abort.abort();
    expect(await holding).toBe("stopped");
  });

  it("has only one of two lead, and the other one once the lease has expired", async () => {
    const one = candidate("one");
    const two = candidate("two");
    await one.acquire(abort.signal);
    const stopOne = new AbortController();
    const holding = one.hold(stopOne.signal);
    let won = false;
    const waiting = two.acquire(abort.signal).then((result) => (won = result));
    await pass(30);
    expect(won).toBe(false);
    // The leader is killed: it renews no more and releases nothing.
    stopOne.abort();
    await holding;
    const seconds = await pass(30, () => won);
    expect(won).toBe(true);
    expect(seconds).toBeGreaterThan(11);
    expect(seconds).toBeLessThanOrEqual(19);
    expect(spec()).toMatchObject({ holderIdentity: "two", leaseTransitions: 1 });
    expect(one.isLeader).toBe(false);
    await waiting;
  });

  it("hands over immediately when the lease is released", async () => {
    const one = candidate("one");
    await one.acquire(abort.signal);
    await one.release();
    expect(one.isLeader).toBe(false);
    const two = candidate("two");
    expect(await two.acquire(abort.signal)).toBe(true);
  });

  it("releases a lease whose last renewal was written and not answered", async () => {
    const one = candidate("one");
    await one.acquire(abort.signal);
    // As after a renewal that the orderly stop broke off: the Lease is newer than the holder knows.
    await client.patch(resources.leases, { namespace: "a", name: "lock" }, { spec: { renewTime: null } });
    await one.release();
    expect(spec().holderIdentity).toBe("");
  });

  it("keeps a lease that another has acquired meanwhile unchanged", async () => {
    const one = candidate("one");
    await one.acquire(abort.signal);
    await client.patch(
      resources.leases,
      { namespace: "a", name: "lock" },
      { spec: { holderIdentity: "two" } },
    );
    await one.release();
    expect(spec().holderIdentity).toBe("two");
  });

  it("does not care what the wall clock says", async () => {
    const one = candidate("one");
    await one.acquire(abort.signal);
    const holding = one.hold(abort.signal);
    const two = candidate("two");
    let won = false;
    const waiting = two.acquire(abort.signal).then((result) => (won = result));
    clock.jumpWall(24 * 3_600_000);
    await pass(10);
    clock.jumpWall(-48 * 3_600_000);
    await pass(10);
    expect([one.isLeader, won]).toEqual([true, false]);
    abort.abort();
    await clock.advance(2_000);
    await Promise.all([holding, waiting]);
  });

  it("loses before another may win, when the apiserver is unavailable", async () => {
    const one = candidate("one");
    await one.acquire(abort.signal);
    const holding = one.hold(abort.signal);
    let ended = "";
    void holding.then((end) => (ended = end));
    await api.down();
    const seconds = await pass(20, () => ended !== "");
    expect(ended).toBe("lost");
    expect(seconds).toBeLessThan(15);
    await api.up();
  });

  it("rides over a short absence of the apiserver", async () => {
    const one = candidate("one");
    await one.acquire(abort.signal);
    const holding = one.hold(abort.signal);
    await api.down();
    await pass(4);
    await api.up();
    await pass(10);
    expect(one.isLeader).toBe(true);
    abort.abort();
    await clock.advance(2_000);
    expect(await holding).toBe("stopped");
  });

  it("loses when somebody else took the lease", async () => {
    const one = candidate("one");
    await one.acquire(abort.signal);
    const holding = one.hold(abort.signal);
    let ended = "";
    void holding.then((end) => (ended = end));
    api.etcd.patch(LEASES, "a/lock", { spec: { holderIdentity: "thief" } });
    await pass(5, () => ended !== "");
    expect([ended, one.isLeader, one.holder]).toEqual(["lost", false, "thief"]);
  });

  it("may not act once its time is over, even before it notices", async () => {
    const ownClock = new FakeClock();
    const one = candidate("one", ownClock);
    await one.acquire(abort.signal);
    await ownClock.advance(14_999);
    expect(one.isLeader).toBe(true);
    await ownClock.advance(1);
    expect(one.isLeader).toBe(false);
  });

  it("refuses times that leave no room", () => {
    const make = () =>
      new LeaderElector({
        client,
        clock,
        random: () => 0,
        log: silentLogger,
        namespace: "a",
        name: "lock",
        identity: "x",
        leaseDurationMs: 5_000,
      });
    expect(make).toThrow(RangeError);
  });
});

describe("shards", () => {
  const shard = (index: number, count: number) => candidate(`${index} of ${count}`, clock, { index, count });
  const holderOf = (name: string) =>
    (api.etcd.get(LEASES, `a/${name}`).spec as { holderIdentity: string }).holderIdentity;

  it("are led side by side, each by its own Lease, which names their number", async () => {
    const [first, second] = [shard(0, 2), shard(1, 2)];
    expect(await Promise.all([first, second].map((one) => one.acquire(abort.signal)))).toEqual([true, true]);
    expect([holderOf("lock"), holderOf("lock-1")]).toEqual(["0 of 2", "1 of 2"]);
    expect(api.etcd.get(LEASES, "a/lock-1").metadata.annotations).toEqual({ "test.dev/shards": "2" });
  });

  it("of another number wait until nobody leads one, and hold nothing meanwhile", async () => {
    const before = shard(0, 1);
    await before.acquire(abort.signal);
    const stopping = new AbortController();
    const held = before.hold(stopping.signal);
    const after = shard(1, 2);
    const acquired = after.acquire(abort.signal);
    await pass(30);
    expect(after.isLeader).toBe(false);
    expect(api.etcd.collection(LEASES).has("a/lock-1")).toBe(false);
    stopping.abort();
    await held;
    await before.release();
    await pass(10, () => after.isLeader);
    expect([await acquired, after.isLeader]).toEqual([true, true]);
  });

  it("of another number are led once the Lease of a leader that was killed has expired", async () => {
    await shard(1, 2).acquire(abort.signal);
    const after = shard(0, 1);
    const acquired = after.acquire(abort.signal);
    expect(await pass(60, () => after.isLeader)).toBeGreaterThanOrEqual(15);
    expect(await acquired).toBe(true);
  });

  it("wait for an operator from before there were shards", async () => {
    await candidate("before").acquire(abort.signal);
    const after = shard(1, 2);
    const acquired = after.acquire(abort.signal);
    await pass(8);
    expect(after.isLeader).toBe(false);
    await pass(30, () => after.isLeader);
    expect(await acquired).toBe(true);
  });

  it("of two numbers that acquire at the same time are never led both", async () => {
    const candidates = [shard(0, 2), shard(1, 2), shard(2, 3)];
    const [two, , three] = candidates;
    const acquired = candidates.map((one) => one.acquire(abort.signal));
    let both = false;
    // For less than a Lease lasts: nobody renews here.
    for (let step = 0; step < 24; step += 1) {
      await pass(0.5);
      // A Lease that is acquired is acted on once `acquire` has resolved.
      const leading = await Promise.all(
        acquired.map((one) =>
          Promise.race([one, new Promise<false>((resolve) => setImmediate(resolve, false))]),
        ),
      );
      both ||= leading[2] === true && (leading[0] === true || leading[1] === true);
    }
    expect(both).toBe(false);
    expect([two, three].some((one) => one?.isLeader)).toBe(true);
  });
});
