import { expect, test } from "vitest";
import { unexpected } from "./attack.ts";
import { bytesOf, type Process } from "./process.ts";
import { allFaults, faults, markdown, type Results, type Row, restarted, slowness } from "./report.ts";
import { type Kind, kinds, type Sample, type Seen, summarize } from "./samples.ts";

const MIB = 2 ** 20;

const seen = (p99: number, failed = 0): Seen => ({
  sent: 100,
  failed,
  failures: failed === 0 ? [] : [`${failed} x 503 SERVER_BUSY`],
  p50: p99 / 2,
  p99,
  max: p99,
});
const everyKind = (one: Seen): Record<Kind, Seen> =>
  Object.fromEntries(kinds.map((kind) => [kind, one])) as Record<Kind, Seen>;
const server = (change: Partial<Process> = {}): Process => ({
  name: "slipway-api-server-1/api-server",
  restarts: 0,
  memoryLimit: 512 * MIB,
  memoryPeak: 200 * MIB,
  ...change,
});
const rowOf = (change: Partial<Row> = {}): Row => ({
  attack: "invented-keys",
  seen: everyKind(seen(150)),
  loopDelay: 12,
  before: [server()],
  after: [server()],
  answers: { "401": 5 },
  expected: ["401"],
  required: ["401"],
  ends: [],
  slowdown: 2,
  ...change,
});
const quiet = everyKind(seen(100));
const resultsOf = (row: Row): Results => ({
  commit: "abc1234",
  rateLimitScale: 100,
  quiet,
  quietLoopDelay: 3,
  rows: [row],
  outcome: { missedRuns: [], dueRuns: 2, acknowledgedRows: 300, lostRows: 0 },
});

test("nothing is wrong where nobody was harmed", () => {
  expect(allFaults(resultsOf(rowOf()))).toEqual([]);
});

test.each<[string, Partial<Row>, string]>([
  [
    "a failed request",
    { seen: everyKind(seen(100, 3)) },
    "3 of 100 of kind app failed (3 x 503 SERVER_BUSY)",
  ],
  ["a failed build", { build: "the build is failed: x" }, "the build is failed: x"],
  [
    "a process that was killed",
    { after: [server({ restarts: 1, lastEnd: "OOMKilled" })] },
    "restarted: slipway-api-server-1/api-server OOMKilled",
  ],
  [
    "memory near its limit",
    { after: [server({ memoryPeak: 400 * MIB })] },
    "slipway-api-server-1/api-server used 78 % of its memory limit",
  ],
  [
    "an answer that is not expected",
    { answers: { "500 INTERNAL_ERROR": 1 } },
    "the attacker was answered 500 INTERNAL_ERROR",
  ],
  ["an attack that attacked nothing", { answers: { "503": 9 } }, "the attacker was never answered 401"],
])("%s is a fault", (_, change, fault) => {
  expect(faults(rowOf(change))).toContain(fault);
});

test("slowness is no fault, and latencies of few requests are shown, not evaluated", () => {
  const slow = rowOf({ seen: everyKind(seen(201)) });
  expect(slowness(slow, quiet)).toContain("p99 of app is 201 ms, quiet 100 ms");
  expect(faults(slow)).toEqual([]);
  expect(slowness(rowOf({ seen: everyKind({ ...seen(900), sent: 99 }) }), quiet)).toEqual([]);
});

test("a missed run and a lost row are faults of the whole run", () => {
  const results = resultsOf(rowOf());
  const outcome = { missedRuns: ["2026-01-01T00:01:00.000Z"], dueRuns: 2, acknowledgedRows: 10, lostRows: 1 };
  expect(allFaults({ ...results, outcome })).toEqual([
    "1 of 10 rows were lost",
    "no run of the job succeeded that was due at 2026-01-01T00:01:00.000Z",
  ]);
  expect(allFaults({ ...results, outcome: { ...results.outcome, dueRuns: 0 } })).toEqual([
    "no run of the job was due",
  ]);
});

test("a pod that was not there before counts as a restart, and one without a limit is not near it", () => {
  const other = server({ name: "slipway-api-server-2/api-server" });
  const change = { before: [server()], after: [server(), other] };
  expect(restarted({ ...change, ends: [] })).toEqual(["slipway-api-server-2/api-server is another pod"]);
  expect(restarted({ ...change, ends: ["slipway-api-server"] })).toEqual([]);
  expect(faults(rowOf({ after: [server({ memoryLimit: undefined, memoryPeak: 9e12 })] }))).toEqual([]);
});

test("the table shows each attack beside the quiet platform", () => {
  const text = markdown(resultsOf(rowOf({ seen: everyKind(seen(250)) })));
  expect(text).toContain("Commit abc1234, rate limits x 100.");
  expect(text).toContain("| invented-keys | 0 of 100, 125 / 250 (2.5) |");
  expect(text).toContain("| 12 | none | slipway-api-server-1/api-server 200 MiB (39 %)");
  expect(text).toContain("- invented-keys: p99 of app is 250 ms, quiet 100 ms");
});

test("latencies are those of requests due in the window that did not fail", () => {
  const sample = (due: number, latency: number, failure?: string): Sample => ({
    kind: "app",
    due,
    latency,
    failure,
  });
  const samples = [
    sample(0, 900),
    ...Array.from({ length: 99 }, (_, index) => sample(10 + index, index + 1)),
    sample(150, 5_000, "503"),
    sample(200, 900),
  ];
  expect(summarize(samples, "app", { from: 10, to: 200 })).toEqual({
    sent: 100,
    failed: 1,
    failures: ["1 x 503"],
    p50: 50,
    p99: 99,
    max: 99,
  });
});

test("a status is expected with any code, another outcome by its words alone", () => {
  expect(unexpected({ "401 INVALID": 1, "500": 1, "no answer": 1 }, ["401", "503"])).toEqual([
    "500",
    "no answer",
  ]);
});

test("quantities of memory are read as Kubernetes writes them", () => {
  expect(["512Mi", "1Gi", "1000", "1k"].map(bytesOf)).toEqual([512 * MIB, 2 ** 30, 1000, 1000]);
});
