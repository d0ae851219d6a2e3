import { type Store, StoreUnavailable } from "@slipway/analytics";
import { beforeEach, expect, test } from "vitest";
import { Analytics, Recent } from "./analytics.ts";

let now = 0;
let queries = 0;
const recent = () => {
  now = 1_000;
  queries = 0;
  return new Recent<number>(2_000, 3, () => now);
};
const work = async () => ++queries;

// Shows: docs/analytics.md#the-api: an answer is reused for at most two seconds, and never for another
test("the same query gets the same answer for a while, also concurrently", async () => {
  const answers = recent();
  expect(await Promise.all([answers.of("a", work), answers.of("a", work)])).toEqual([1, 1]);
  now += 2_000;
  expect(await answers.of("a", work)).toBe(1);
  now += 1;
  expect(await answers.of("a", work)).toBe(2);
});

test("another question is given its own", async () => {
  const answers = recent();
  expect(await answers.of("a", work)).toBe(1);
  expect(await answers.of("b", work)).toBe(2);
  expect(await answers.of("a", work)).toBe(1);
});

test("a failure is returned to the callers that wait for it, and not again", async () => {
  const answers = recent();
  const broken = async () => Promise.reject(new Error("away"));
  const both = [answers.of("a", broken), answers.of("a", work)];
  await expect(both[0]).rejects.toThrow("away");
  await expect(both[1]).rejects.toThrow("away");
  expect(await answers.of("a", work)).toBe(1);
});

test("the oldest answers go when there are many", async () => {
  const answers = recent();
  for (const question of ["a", "b", "c", "d"]) {
    await answers.of(question, work);
  }
  expect(await answers.of("d", work)).toBe(4);
  expect(await answers.of("a", work)).toBe(5);
});

const store = { database: "d", cluster: undefined } as Store;
const project = { organizationId: "o", id: "p" };
const { signal: connected } = new AbortController();
const question = { about: ["summary"], window: { rangeMs: 60_000 }, filter: {} };
let windowTime: number;
let analytics: Analytics;
beforeEach(() => {
  windowTime = 1_000_000;
  analytics = new Analytics(store, { now: () => new Date(windowTime) });
});

test("a range ends now, and the answer says which window it is about, although a later call gets it", async () => {
  const first = await analytics.answer(project, question, async (_, { window }) => window);
  expect(first).toEqual({
    window: { from: 940_000, to: 1_000_000 },
    value: { from: 940_000, to: 1_000_000 },
  });
  windowTime += 500;
  expect(await analytics.answer(project, question, async () => "other")).toEqual(first);
});

// Shows: docs/analytics.md#the-api: an answer is reused for at most two seconds, and never for another
test("nothing that an answer depends on is left out of the question", async () => {
  const read = async (_: Store, selection: unknown) => JSON.stringify(selection);
  const first = await analytics.answer(project, question, read);
  const others = [
    [{ ...project, id: "q" }, question],
    [{ ...project, organizationId: "r" }, question],
    [project, { ...question, about: ["routes", 1, 5] }],
    [project, { ...question, about: ["routes", 2, 5] }],
    [project, { ...question, window: { rangeMs: 120_000 } }],
    [project, { ...question, window: { from: 940_000, to: 1_000_000 } }],
    [project, { ...question, filter: { statusCode: 404 } }],
    [project, { ...question, filter: { path: "/" } }],
  ] as const;
  const seen = new Set([first]);
  for (const [whose, what] of others) {
    const answer = await analytics.answer(whose, what, read);
    expect(seen.has(answer)).toBe(false);
    seen.add(answer);
  }
});

// Shows: docs/analytics.md#the-api: 503 `ANALYTICS_NOT_CONFIGURED`: the platform has no store
test("without a store, and without an answer of it, there is a failure of its own", async () => {
  const none = new Analytics(undefined);
  expect(() => none.answer(project, question, async () => 1)).toThrow(
    expect.objectContaining({ status: 503, code: "ANALYTICS_NOT_CONFIGURED" }),
  );
  const failing = (busy: boolean) =>
    analytics.answer(project, { ...question, about: [busy] }, async () =>
      Promise.reject(new StoreUnavailable(new Error("x"), busy)),
    );
  await expect(failing(false)).rejects.toMatchObject({ status: 503, code: "ANALYTICS_UNAVAILABLE" });
  await expect(failing(true)).rejects.toMatchObject({ status: 503, code: "ANALYTICS_BUSY" });
});

// Shows: docs/logs.md#over-v1: 503 `ANALYTICS_NOT_CONFIGURED`: the platform has no store, or collects no logs
// Shows: docs/logs.md#over-v1: 503 `ANALYTICS_BUSY`: the search needs more than
test("a search fails as other queries do, and is never given again", async () => {
  for (const without of [new Analytics(undefined), new Analytics(store, { keepsLogs: false })]) {
    expect(() => without.search("acme", connected, async () => 1)).toThrow(
      expect.objectContaining({ status: 503, code: "ANALYTICS_NOT_CONFIGURED" }),
    );
  }
  const failing = (busy: boolean) =>
    analytics.search("acme", connected, async () =>
      Promise.reject(new StoreUnavailable(new Error("x"), busy)),
    );
  await expect(failing(false)).rejects.toMatchObject({ status: 503, code: "ANALYTICS_UNAVAILABLE" });
  await expect(failing(true)).rejects.toMatchObject({ status: 503, code: "ANALYTICS_BUSY" });
  let asked = 0;
  const search = () => analytics.search("acme", connected, async () => ++asked);
  expect([await search(), await search()]).toEqual([1, 2]);
});

// Shows: docs/logs.md#over-v1: searches keep network analytics and other organizations' searches from nothing
test("searches take no place of other queries, and one organization's wait for each other alone", async () => {
  const { promise: long, resolve: end } = Promise.withResolvers<void>();
  const begun: string[] = [];
  const search = (organization: string) =>
    analytics.search(organization, connected, async () => {
      begun.push(organization);
      await long;
    });
  const searches = [search("o"), search("o"), search("o"), search("p")];
  expect(await analytics.answer(project, question, async () => "an answer")).toMatchObject({
    value: "an answer",
  });
  expect(begun).toEqual(["o", "p"]);
  end();
  await Promise.all(searches);
  expect(begun).toEqual(["o", "p", "o", "o"]);
});

test("a search whose client has disconnected when its turn comes does not begin", async () => {
  let hasBegun = false;
  const search = analytics.search("acme", AbortSignal.abort(), async () => {
    hasBegun = true;
  });
  await expect(search).rejects.toMatchObject({ status: 503, code: "ANALYTICS_UNAVAILABLE" });
  expect(hasBegun).toBe(false);
});

// Shows: docs/metrics.md#over-v1: 503 `ANALYTICS_BUSY`: the history needs more than ten seconds
test("all queries of a history have one deadline", async () => {
  const short = new Analytics(store, { historyMs: 50 });
  const signals: AbortSignal[] = [];
  const history = short.history("acme", connected, async (_store, within) => {
    signals.push(within);
    await new Promise<void>((_resolve, reject) => {
      within.addEventListener("abort", () => reject(new StoreUnavailable(within.reason)));
    });
  });
  await expect(history).rejects.toMatchObject({ status: 503, code: "ANALYTICS_BUSY" });
  expect(signals).toMatchObject([{ aborted: true }]);
  expect(await short.history("acme", connected, async () => "the place is free")).toBe("the place is free");
});

// Shows: docs/metrics.md#over-v1: 503 `ANALYTICS_BUSY`: the history needs more than ten seconds
// Shows: docs/metrics.md#what-is-promised: histories keep searches and network analytics from nothing
test("histories take no place of searches, and one organization's wait for each other alone", async () => {
  const without = new Analytics(store, { keepsMetrics: false });
  expect(() => without.history("acme", connected, async () => 1)).toThrow(
    expect.objectContaining({ status: 503, code: "ANALYTICS_NOT_CONFIGURED" }),
  );
  expect(await without.search("acme", connected, async () => 1)).toBe(1);
  const failing = (busy: boolean) =>
    analytics.history("acme", connected, async () =>
      Promise.reject(new StoreUnavailable(new Error("x"), busy)),
    );
  await expect(failing(false)).rejects.toMatchObject({ status: 503, code: "ANALYTICS_UNAVAILABLE" });
  await expect(failing(true)).rejects.toMatchObject({ status: 503, code: "ANALYTICS_BUSY" });
  const { promise: long, resolve: end } = Promise.withResolvers<void>();
  const begun: string[] = [];
  const history = (organization: string) =>
    analytics.history(organization, connected, async () => {
      begun.push(organization);
      await long;
    });
  const histories = [history("o"), history("o"), history("p")];
  expect(await analytics.search("o", connected, async () => "found")).toBe("found");
  expect(begun).toEqual(["o", "p"]);
  end();
  await Promise.all(histories);
  expect(begun).toEqual(["o", "p", "o"]);
});
