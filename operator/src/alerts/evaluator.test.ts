import { type ProjectsSelection, StoreUnavailable } from "@slipway/analytics";
import type { AlertRule, Project } from "@slipway/crds";
import type { AlertChange, RecordedAlert } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { beforeEach, expect, test } from "vitest";
import { AlertEvaluator } from "./evaluator.ts";
import { createAlertMetrics } from "./metrics.ts";
import type { AlertLedger, AlertStore } from "./ports.ts";
import { textOf } from "./rules.ts";
import { Turns } from "./turns.ts";

/** A ledger and a store in memory. */

let projects: Project[];
/** Percent of its memory that each project uses, in every step. */
let used: Map<string, number>;
/** Percent of requests that failed, of 100 in each of the last three minutes. */
let failed: Map<string, number>;
let failure: Error | undefined;
/** Projects with too many samples: a query with one of them fails. */
let heavy: Set<string>;
/** And one with one of these is refused, */
let odd: Set<string>;
/** and the connection breaks while one with one of these runs. */
let breaking: Set<string>;
let queries: string[][];
let now: number;
let rows: Map<string, RecordedAlert>;
let changes: AlertChange[];
let reads: number;
let isLedgerDown: boolean;

beforeEach(() => {
  projects = [];
  used = new Map();
  failed = new Map();
  failure = undefined;
  heavy = new Set();
  odd = new Set();
  breaking = new Set();
  queries = [];
  now = 1_800_000_000;
  rows = new Map();
  changes = [];
  reads = 0;
  isLedgerDown = false;
});

const memory: AlertRule = { name: "memory", metric: "memory", threshold: 90, forSeconds: 60 };
function project(
  id: string,
  alerts: AlertRule[] = [memory],
  organization = "acme",
  status: object = {},
): void {
  projects.push({
    metadata: { name: id, namespace: `slipway-org-${organization}`, uid: `u-${id}` },
    spec: { type: "http", alerts },
    status: { maxCpu: "500m", maxMemory: "1000", ...status },
  } as unknown as Project);
}

const store: AlertStore = {
  usage: async (selection: ProjectsSelection) => {
    queries.push(selection.projects.map((one) => one.project));
    if (failure) {
      throw failure;
    }
    if (selection.projects.some((one) => heavy.has(one.project))) {
      throw new StoreUnavailable(new Error("too much"), true);
    }
    if (selection.projects.some((one) => odd.has(one.project))) {
      throw Object.assign(new Error("cannot parse"), { code: "6" });
    }
    if (selection.projects.some((one) => breaking.has(one.project))) {
      throw new StoreUnavailable(Object.assign(new Error("read"), { code: "ECONNRESET" }));
    }
    return selection.projects.flatMap(({ organization, project: id }) => {
      const percent = used.get(id);
      const points = [90, 60, 30].map((ago) => ({
        ...{ at: now - ago, cpuCores: null, volumePercent: null, leastVolumePercent: null },
        ...{ memoryBytes: (percent ?? 0) * 10, leastMemoryBytes: (percent ?? 0) * 10 },
      }));
      return percent === undefined ? [] : [{ organization, project: id, points }];
    });
  },
  requests: async ({ projects: those }) =>
    those.flatMap(({ organization, project: id }) => {
      const errors = failed.get(id);
      const minutes = [120, 60, 0].map((ago) => ({ at: now - ago, requests: 100, errors: errors ?? 0 }));
      return errors === undefined ? [] : [{ organization, project: id, minutes }];
    }),
  close: async () => {},
};

const ledger: AlertLedger = {
  list: async () => {
    reads += 1;
    return [...rows.values()];
  },
  change: async (given, at) => {
    if (now - at.getTime() / 1_000 > 60) {
      return { recorded: [], changed: 0 };
    }
    if (isLedgerDown) {
      throw new Error("connection refused");
    }
    const recorded: RecordedAlert[] = [];
    let changed = 0;
    for (const { before, ...change } of given) {
      if (rows.get(textOf(change))?.since !== before?.since) {
        continue;
      }
      changes.push({ before, ...change });
      changed += 1;
      rows.delete(textOf(change));
      if (change.state !== undefined) {
        const row = { ...change, state: change.state, since: new Date(now * 1_000 + changed) };
        rows.set(textOf(change), row);
        recorded.push(row);
      }
    }
    return { recorded, changed };
  },
};

const lead = (turns?: Turns, options: { store?: AlertStore } = { store }) =>
  new AlertEvaluator({
    ...{ store: undefined, ...options },
    ledger,
    projects: { hasSynced: true, list: () => projects },
    owns: (namespace) => namespace !== "slipway-org-other",
    clock: { now: () => new Date(now * 1_000), monotonic: () => now * 1_000 },
    metrics: createAlertMetrics(new Registry(), () => 0),
    log: silentLogger,
    turns,
  });
const evaluate = (evaluator: AlertEvaluator) => evaluator.evaluate(new AbortController().signal);
/** Evaluates every minute for some time, and at its end. */
const evaluateFor = async (evaluator: AlertEvaluator, seconds: number) => {
  for (const end = now + seconds; now < end; ) {
    now = Math.min(now + 60, end);
    await evaluate(evaluator);
  }
};
const states = () => changes.map(({ projectId, state }) => `${projectId} ${state}`);

// Shows: docs/alerts.md#what-is-promised: nothing is written while no state changes
test("a change is recorded once, and nothing while states stay", async () => {
  project("a");
  used.set("a", 95);
  const evaluator = lead();
  await evaluate(evaluator);
  await evaluate(evaluator);
  used.set("a", 50);
  await evaluate(evaluator);
  await evaluate(evaluator);
  expect(states()).toEqual(["a firing", "a ok"]);
  expect(reads).toBe(1);
});

// Shows: docs/alerts.md#what-is-promised: a value that goes to and fro changes nothing
test("a share of failed requests near the threshold changes the state once in `for_seconds` at most", async () => {
  project("a", [{ name: "errors", metric: "error_rate", threshold: 5, forSeconds: 300 }]);
  const evaluator = lead();
  for (let evaluation = 0; evaluation < 120; evaluation += 1) {
    failed.set("a", evaluation % 2 === 0 ? 6 : 4);
    await evaluate(evaluator);
    now += 30;
  }
  expect(states().slice(0, 3)).toEqual(["a firing", "a ok", "a firing"]);
  expect(changes.length).toBeLessThanOrEqual(3_600 / 300);
});

// Shows: docs/alerts.md#metrics: `cpu`, `memory`
test("another plan decides nothing by what was used before it", async () => {
  project("a");
  used.set("a", 50);
  const evaluator = lead();
  await evaluate(evaluator);
  const before = { status: "succeeded", settings: { plan: "large" } };
  const deployed = (status: object) => {
    projects = [];
    const deployments = [{ settings: { plan: "small" }, ...status }, before];
    project("a", [memory], "acme", { plan: "small", maxMemory: "500", deployments });
  };
  deployed({ status: "in_progress" });
  await evaluate(evaluator);
  const finishedAt = new Date((now - 30) * 1_000).toISOString();
  // Instances of the deployment before serve on, by its limits.
  deployed({ status: "failed", finishedAt });
  await evaluate(evaluator);
  now += 60;
  await evaluate(evaluator);
  now -= 60;
  deployed({ status: "succeeded", finishedAt });
  await evaluate(evaluator);
  expect(states()).toEqual(["a ok"]);
  now += 60;
  await evaluate(evaluator);
  expect(states()).toEqual(["a ok", "a firing"]);
});

// Shows: docs/alerts.md#what-is-promised: states outlive the process that evaluates
test("the next leader goes on with the states of the one before", async () => {
  project("a");
  used.set("a", 95);
  const first = lead();
  await evaluate(first);
  const second = lead();
  await evaluate(second);
  used.set("a", 10);
  await evaluate(second);
  // The first one has lost its leadership and does not know: what it has read is no longer so.
  await evaluate(first);
  expect(states()).toEqual(["a firing", "a ok"]);
});

test("one that no longer leads, or was stopped while it observed, records nothing", async () => {
  project("a");
  used.set("a", 95);
  const aborted = new AbortController();
  const ending: AlertStore["usage"] = (...given) => {
    aborted.abort();
    return store.usage(...given);
  };
  const former = lead(undefined, { store: { ...store, usage: ending } });
  expect(await former.evaluate(aborted.signal)).toBe(false);
  let isStopped = true;
  const pausing: AlertStore["usage"] = async (...given) => {
    now += isStopped ? 600 : 0;
    return store.usage(...given);
  };
  const late = lead(undefined, { store: { ...store, usage: pausing } });
  expect(await evaluate(late)).toBe(false);
  expect(states()).toEqual([]);
  isStopped = false;
  expect(await evaluate(late)).toBe(true);
  expect(states()).toEqual(["a firing"]);
});

test("what the ledger has not taken is recorded by the next evaluation", async () => {
  project("a");
  used.set("a", 95);
  isLedgerDown = true;
  const evaluator = lead();
  await expect(evaluate(evaluator)).rejects.toThrow("connection refused");
  isLedgerDown = false;
  await evaluate(evaluator);
  expect(states()).toEqual(["a firing"]);
});

// Shows: docs/alerts.md#what-is-promised: while the store is away no state changes
test("while the store is away nothing changes, and for a while after it data counts as late", async () => {
  project("a");
  used.set("a", 95);
  const evaluator = lead();
  await evaluate(evaluator);
  failure = new StoreUnavailable(Object.assign(new Error("connect"), { code: "ECONNREFUSED" }));
  now += 3_600;
  expect(await evaluate(evaluator)).toBe(false);
  failure = undefined;
  used.clear();
  expect(await evaluate(evaluator)).toBe(true);
  await evaluateFor(evaluator, 299);
  expect(states()).toEqual(["a firing"]);
  await evaluateFor(evaluator, 1);
  expect(states()).toEqual(["a firing", "a no_data"]);
});

// Shows: docs/alerts.md#states: `no_data` | nothing has been measured yet
test("without a store states of what it measured end, once, and none begins", async () => {
  project("a");
  used.set("a", 95);
  project("b", [{ name: "failed", metric: "failed_deployment" }], "acme", {
    deployments: [{ status: "failed" }],
  });
  await evaluate(lead());
  project("c");
  const without = lead(undefined, {});
  expect(await evaluate(without)).toBe(true);
  await evaluate(without);
  expect(states()).toEqual(["a firing", "b firing", "a no_data"]);
});

test("without rules nothing is queried", async () => {
  project("a", []);
  project("b", [{ name: "failed", metric: "failed_deployment" }], "acme", {
    deployments: [{ status: "failed" }],
  });
  await evaluate(lead());
  expect(queries).toEqual([]);
  expect(states()).toEqual(["b firing"]);
});

test("a rule that is gone ends in the second evaluation without it", async () => {
  project("a");
  used.set("a", 95);
  const evaluator = lead();
  await evaluate(evaluator);
  projects = [];
  await evaluate(evaluator);
  expect(states()).toEqual(["a firing"]);
  await evaluate(evaluator);
  await evaluate(evaluator);
  expect(states()).toEqual(["a firing", "a undefined"]);
});

test("projects of another shard are left to it", async () => {
  project("a", [memory], "other");
  used.set("a", 95);
  await evaluate(lead());
  expect(queries).toEqual([]);
});

// Shows: docs/alerts.md#what-is-promised: while the store is away no state changes
test("a store that has been too busy for an hour makes nothing missing right after it", async () => {
  project("a");
  used.set("a", 95);
  const evaluator = lead();
  await evaluate(evaluator);
  failure = new StoreUnavailable(new Error("too much"), true);
  for (let minute = 0; minute < 60; minute += 1) {
    now += 60;
    expect(await evaluate(evaluator)).toBe(false);
  }
  failure = undefined;
  used.clear();
  expect(await evaluate(evaluator)).toBe(true);
  expect(states()).toEqual(["a firing"]);
  await evaluateFor(evaluator, 300);
  expect(states()).toEqual(["a firing", "a no_data"]);
});

// Shows: docs/alerts.md#states: `no_data` | nothing has been measured yet
test("data that ends is missing also where the project is measured in every second evaluation alone", async () => {
  project("a");
  used.set("a", 95);
  const evaluator = lead();
  await evaluate(evaluator);
  used.clear();
  const busy = new StoreUnavailable(new Error("too much"), true);
  const until = async (seconds: number) => {
    for (const end = now + seconds; now < end; ) {
      now += 30;
      failure = failure ? undefined : busy;
      await evaluate(evaluator);
    }
  };
  await until(270);
  expect(states()).toEqual(["a firing"]);
  await until(60);
  expect(states()).toEqual(["a firing", "a no_data"]);
});

test("a time in which nothing was measured makes nothing missing right after it", async () => {
  project("a");
  used.set("a", 95);
  const evaluator = lead();
  await evaluate(evaluator);
  const [measured] = projects;
  projects = [];
  await evaluate(evaluator);
  now += 3_600;
  projects = measured === undefined ? [] : [measured];
  used.clear();
  await evaluate(evaluator);
  await evaluateFor(evaluator, 299);
  expect(states()).toEqual(["a firing"]);
  await evaluateFor(evaluator, 1);
  expect(states()).toEqual(["a firing", "a no_data"]);
});

// Shows: docs/alerts.md#bounds: One query is of up to 200 projects
test("many projects are one query, each organization's first ones before others' next", async () => {
  for (const id of ["a1", "a2", "a3"]) {
    project(id);
  }
  project("b1", [memory], "globex");
  await evaluate(lead(new Turns(2)));
  expect(queries).toEqual([
    ["a1", "b1"],
    ["a2", "a3"],
  ]);
});

test("a project whose data the store refuses keeps no others from being measured", async () => {
  for (let index = 0; index < 20; index += 1) {
    project(`p${index}`);
    used.set(`p${index}`, 10);
  }
  odd.add("p3");
  const evaluator = lead(new Turns(16));
  for (let count = 0; count < 60; count += 1) {
    await evaluate(evaluator);
  }
  queries = [];
  await evaluate(evaluator);
  expect(queries.at(-1)).toEqual(["p3"]);
  expect(queries.flat()).toHaveLength(20);
  expect(changes).toHaveLength(19);
});

test("a project whose queries break the connection keeps no others from being measured", async () => {
  for (let index = 0; index < 40; index += 1) {
    project(`p${index}`);
    used.set(`p${index}`, 10);
  }
  breaking.add("p3");
  const evaluator = lead(new Turns(16));
  for (let count = 0; count < 6; count += 1) {
    expect(await evaluate(evaluator)).toBe(false);
  }
  expect(changes).toHaveLength(39);
  expect(queries.at(-1)).toEqual(["p3"]);
});

// Shows: docs/alerts.md#bounds: The store is queried for 20 s
test("an answer of something in between ends the evaluation, and only the one group is queried in parts then", async () => {
  for (let index = 0; index < 12; index += 1) {
    project(`p${index}`);
  }
  const evaluator = lead(new Turns(4));
  failure = new StoreUnavailable(new Error("<html>503 Service Unavailable</html>"));
  await evaluate(evaluator);
  expect(queries).toHaveLength(1);
  queries = [];
  failure = undefined;
  expect(await evaluate(evaluator)).toBe(true);
  expect(queries.map(({ length }) => length)).toEqual([4, 4, 2, 2]);
});

// Shows: docs/alerts.md#bounds: One query is of up to 200 projects
test("a query that something in between refuses is repeated of fewer projects, and one without a connection of as many, after others", async () => {
  for (const id of ["a1", "a2", "a3"]) {
    project(id);
  }
  const evaluator = lead(new Turns(2));
  const next = async () => {
    queries = [];
    expect(await evaluate(evaluator)).toBe(false);
    return queries;
  };
  const away = new StoreUnavailable(Object.assign(new Error("connect"), { code: "ECONNREFUSED" }));
  failure = away;
  expect(await next()).toEqual([["a1", "a2"]]);
  expect(await next()).toEqual([["a3", "a1"]]);
  expect(await next()).toEqual([["a2", "a1"]]);
  failure = new StoreUnavailable(new Error("<html>414 Request-URI Too Large</html>"));
  expect(await next()).toEqual([["a3", "a1"]]);
  expect(await next()).toEqual([["a2"]]);
  expect(await next()).toEqual([["a1"]]);
  expect(await next()).toEqual([["a3"]]);
});

// Shows: docs/alerts.md#bounds: One query is of up to 200 projects
test("a project that is always too much is soon queried alone and last, and all others are measured in each evaluation", async () => {
  for (let index = 0; index < 40; index += 1) {
    project(`p${index}`);
    used.set(`p${index}`, 10);
  }
  heavy.add("p3");
  const evaluator = lead(new Turns(16));
  for (let count = 0; count < 60; count += 1) {
    await evaluate(evaluator);
  }
  expect(new Set(states())).toEqual(
    new Set(
      projects.filter(({ metadata }) => metadata.name !== "p3").map(({ metadata }) => `${metadata.name} ok`),
    ),
  );
  for (let count = 0; count < 10; count += 1) {
    queries = [];
    expect(await evaluate(evaluator)).toBe(false);
    expect(queries.at(-1)).toEqual(["p3"]);
    expect(queries.flat()).toHaveLength(40);
    expect(queries).toHaveLength(4);
  }
  heavy.clear();
  for (let count = 0; count < 45; count += 1) {
    queries = [];
    await evaluate(evaluator);
  }
  expect(queries).toHaveLength(3);
});
