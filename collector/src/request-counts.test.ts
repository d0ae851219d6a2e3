import { beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import { RequestCounts } from "./request-counts.ts";

const shop = { organization: "acme", project: "pshop" };
const blog = { organization: "acme", project: "pblog" };

let clock: FakeClock;
let isReading: boolean;
let counts: RequestCounts;

beforeEach(() => {
  clock = new FakeClock();
  isReading = true;
  counts = new RequestCounts({ process: "one", clock, isReading: () => isReading });
});

const endedAgo = (ms: number) => clock.now().getTime() - ms;

test("requests are counted by project, and a project without any is forgotten after ten minutes", async () => {
  counts.add(shop, endedAgo(0));
  counts.add(shop, endedAgo(5_000));
  counts.add(blog, endedAgo(0));
  expect(counts.answer()).toEqual({
    process: "one",
    at: clock.monotonic(),
    complete: true,
    counts: { "acme/pshop": 2, "acme/pblog": 1 },
  });
  await clock.advance(600_000);
  counts.add(shop, endedAgo(0));
  await clock.advance(1);
  expect(counts.answer().counts).toEqual({ "acme/pshop": 3 });
});

test("a request of a log that was not read in time is no load, and the counts are incomplete for a while", async () => {
  counts.add(shop, endedAgo(5_001));
  expect(counts.answer()).toMatchObject({ complete: false, counts: {} });
  await clock.advance(15_000);
  expect(counts.answer()).toMatchObject({ complete: true, counts: {} });
});

test("the counts are incomplete while no logs are read", () => {
  counts.add(shop, endedAgo(0));
  isReading = false;
  expect(counts.answer()).toMatchObject({ complete: false, counts: { "acme/pshop": 1 } });
});

test("the counts are incomplete for a while after a part of a log was lost", async () => {
  counts.add(shop, endedAgo(0));
  counts.behind();
  expect(counts.answer()).toMatchObject({ complete: false, counts: { "acme/pshop": 1 } });
  await clock.advance(15_000);
  expect(counts.answer()).toMatchObject({ complete: true });
});
