import { describe, expect, it } from "vitest";
import { ConcurrencyLimiter } from "./concurrency-limiter.ts";

const refuse = () => new Error("busy");
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Work that ends when the test says so. */
function piece(seen: string[] = [], name = "") {
  const { promise, resolve } = Promise.withResolvers<void>();
  const run = (): Promise<void> => {
    seen.push(name);
    return promise;
  };
  return { end: resolve, run };
}

describe("work of one key", () => {
  // Shows: docs/analytics.md#the-api: one organization does not keep the others waiting
  // Shows: docs/applications.md#errors-every-operation: 503 | `SERVER_BUSY`, with `Retry-After`: an
  it("gets no more than its share, and the others continue", async () => {
    const limiter = new ConcurrencyLimiter({ total: 3, perKey: 2, refuse });
    const seen: string[] = [];
    const pieces = ["a1", "a2", "a3", "b1"].map((name) => piece(seen, name));
    const all = pieces.map(({ run }, at) => limiter.run(at < 3 ? "a" : "b", run));
    await turn();
    expect(seen).toEqual(["a1", "a2", "b1"]);
    pieces[3]?.end();
    await turn();
    expect(seen).toHaveLength(3);
    pieces[0]?.end();
    await turn();
    expect(seen).toEqual(["a1", "a2", "b1", "a3"]);
    for (const { end } of pieces) {
      end();
    }
    await Promise.all(all);
    expect(limiter.inUse).toBe(0);
  });

  it("begins immediately where there is a place", async () => {
    const limiter = new ConcurrencyLimiter({ perKey: 1 });
    const seen: string[] = [];
    const one = limiter.run("a", () => void seen.push("a"));
    expect(seen).toEqual(["a"]);
    await one;
  });

  it("runs in the order of arrival, past a failure", async () => {
    const limiter = new ConcurrencyLimiter({ perKey: 1, refuse });
    const seen: string[] = [];
    const failed = limiter.run("a", () => Promise.reject(new Error("broken")));
    const others = ["2", "3"].map((name) => limiter.run("a", () => void seen.push(name)));
    await expect(failed).rejects.toThrow("broken");
    await Promise.all(others);
    expect(seen).toEqual(["2", "3"]);
  });

  it("does not take all places to wait", async () => {
    const limiter = new ConcurrencyLimiter({ total: 1, perKey: 1, waiting: 3, waitingPerKey: 2, refuse });
    const first = await limiter.acquire("a");
    const waiting = [limiter.acquire("a"), limiter.acquire("a")];
    await expect(limiter.acquire("a")).rejects.toThrow("busy");
    waiting.push(limiter.acquire("b"));
    await expect(limiter.acquire("c")).rejects.toThrow("busy");
    first();
    for (const one of waiting) {
      void one.then((release) => release());
    }
    await Promise.all(waiting);
  });
});

describe("who waits", () => {
  it("goes first when its key uses least, then who came first", async () => {
    const limiter = new ConcurrencyLimiter({ total: 3, perKey: 3, refuse });
    const seen: string[] = [];
    const releases = [await limiter.acquire("a"), await limiter.acquire("a"), await limiter.acquire("b")];
    for (const key of ["a", "b", "c", "d"]) {
      void limiter.acquire(key).then(() => seen.push(key));
    }
    await turn();
    releases[2]?.();
    await turn();
    expect(seen).toEqual(["b"]);
    releases[0]?.();
    await turn();
    expect(seen).toEqual(["b", "c"]);
  });

  // Shows: docs/analytics.md#the-api: 503 `ANALYTICS_BUSY`: the query needs too much time or memory, or
  it("is refused in time, and never begins", async () => {
    const limiter = new ConcurrencyLimiter({ perKey: 1, waitMs: 5, refuse });
    const release = await limiter.acquire("a");
    let begun = false;
    await expect(
      limiter.run("a", () => {
        begun = true;
      }),
    ).rejects.toThrow("busy");
    release();
    release();
    await turn();
    expect([begun, limiter.inUse]).toEqual([false, 0]);
    expect(await limiter.run("a", () => "in")).toBe("in");
  });
});

describe("units", () => {
  it("bound the total, and a large one is not overtaken without end", async () => {
    const limiter = new ConcurrencyLimiter({ total: 10, perKey: 8, refuse });
    const small = await limiter.acquire("a", 4);
    let large: (() => void) | undefined;
    void limiter.acquire("b", 8).then((release) => {
      large = release;
    });
    // Its own and other keys wait behind it.
    expect(limiter.tryAcquire("b", 1)).toBeUndefined();
    expect(limiter.tryAcquire("c", 1)).toBeUndefined();
    expect(limiter.usedBy("a")).toBe(4);
    small();
    await turn();
    expect([large !== undefined, limiter.inUse]).toEqual([true, 8]);
    large?.();
  });

  it("go to a large one at last, also while small ones of other keys keep coming", async () => {
    const limiter = new ConcurrencyLimiter({ total: 10, perKey: 8, refuse });
    let small = await limiter.acquire("a", 4);
    let hasLarge = false;
    void limiter.acquire("b", 8).then(() => {
      hasLarge = true;
    });
    // Each comes before the one before it has gone.
    for (const key of ["c", "d", "e"]) {
      const next = limiter.acquire(key, 4);
      small();
      await turn();
      small = await Promise.race([next, turn().then(() => () => undefined)]);
    }
    expect(hasLarge).toBe(true);
  });

  it("that are more than a share are refused immediately", async () => {
    const limiter = new ConcurrencyLimiter({ total: 10, perKey: 5, refuse });
    await expect(limiter.acquire("a", 6)).rejects.toThrow("busy");
  });
});
