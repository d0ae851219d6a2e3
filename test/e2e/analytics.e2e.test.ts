import { request as plain } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { MAX_AGENTS_PER_MINUTE, MAX_ROUTES_PER_MINUTE } from "@slipway/analytics";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { untilServing } from "./support/ingress.ts";
import {
  type Answered,
  type Item,
  inParallel,
  type Known,
  networkAnalytics,
  type RequestEvent,
  send,
} from "./support/network-analytics.ts";
import { stack } from "./support/stack.ts";

const count = isLong ? 10_000 : 1_000;
const hostile = isLong ? 10_000 : 1_500;

const call = apiClient();
const ids: string[] = [];

async function project(prefix: string) {
  const { project_id: id, domain } = await createProject(call, httpProject(uniqueName(prefix)));
  ids.push(id);
  await untilStatus(call, id, "running");
  return { id, domain };
}

let exact: { id: string; domain: string };
let attacked: { id: string; domain: string };
beforeAll(async () => {
  [exact, attacked] = await Promise.all([project("exact"), project("hostile")]);
  // Every request is counted: those of this wait end before the first test's `from`, its margin included.
  await Promise.all([exact, attacked].map(({ domain }) => untilServing(domain)));
  await sleep(1_100);
});
afterAll(() => deleteProjects(call, ids));

const STATUSES = [200, 201, 204, 301, 400, 404, 418, 500, 503];
const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

/** The nth of the known requests: statuses, agents, routes, sizes and delays in every combination. */
function known(number: number): Known {
  const userAgent = `agent/${number % 7}`;
  const kind = number % 10;
  const common = { userAgent, body: "" } as const;
  if (kind < 5) {
    const status = STATUSES[number % STATUSES.length] ?? 200;
    return { ...common, method: "GET", path: `/status/${status}`, route: "/status/:number", status };
  }
  if (kind === 5) {
    return { ...common, method: "GET", path: `/sleep/${number % 50}`, route: "/sleep/:number", status: 200 };
  }
  if (kind < 8) {
    return {
      ...common,
      method: "GET",
      path: `/orders/${uuid(number)}/items`,
      route: "/orders/:uuid/items",
      status: 200,
    };
  }
  return {
    ...common,
    method: "POST",
    path: "/upload",
    route: "/upload",
    status: 200,
    body: "x".repeat(number),
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
function tally<T>(items: readonly T[], key: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) {
    counts[key(item)] = (counts[key(item)] ?? 0) + 1;
  }
  return counts;
}

/** Of the lists that count by something: the same counts and sizes as the requests have. */
function expectItems(
  items: readonly Item[],
  answered: readonly Answered[],
  key: keyof Item,
  of: (request: Answered) => string,
) {
  const names = Object.keys(tally(answered, of));
  expect(items.map((item) => item[key]).sort()).toEqual(names.sort());
  for (const item of items) {
    const own = answered.filter((request) => of(request) === item[key]);
    expect(item).toMatchObject({
      requests: own.length,
      bytes_received: sum(own.map(({ body }) => body.length)),
      bytes_sent: sum(own.map(({ bytesSent }) => bytesSent)),
    });
    if (item.status_codes) {
      expect(item.status_codes).toEqual(tally(own, ({ status }) => String(status)));
    }
  }
}

// Shows: docs/analytics.md#other-ingresses: known requests through the ingress are counted exactly by
test(`${count} known requests: all six endpoints count exactly them`, async () => {
  const from = new Date(Date.now() - 1_000);
  const network = networkAnalytics(call, exact.id, from);
  const all = Array.from({ length: count }, (_, number) => known(number));
  const answered = await inParallel(all, 16, (one) => send(exact.domain, one));
  await network.untilCounted(count);

  const { summary, status_classes } = await network.summary();
  expect(summary).toMatchObject({
    requests: count,
    bytes_received: sum(answered.map(({ body }) => body.length)),
    bytes_sent: sum(answered.map(({ bytesSent }) => bytesSent)),
  });
  const classes = tally(answered, ({ status }) => `${Math.floor(status / 100)}xx`);
  expect(status_classes).toEqual({ "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0, ...classes });

  const statuses = await network.all<Item>("status-codes");
  expectItems(statuses, answered, "status_code", ({ status }) => String(status));
  for (const item of statuses) {
    const own = answered.filter(({ status }) => String(status) === item.status_code);
    expect(item.routes).toEqual(tally(own, ({ route }) => route));
    expect(item.user_agents).toEqual(tally(own, ({ userAgent }) => userAgent));
  }
  expectItems(await network.all<Item>("routes"), answered, "route", ({ route }) => route);
  expectItems(await network.all<Item>("user-agents"), answered, "user_agent", ({ userAgent }) => userAgent);
  expectItems(await network.all<Item>("source-ips"), answered, "source_ip", () => stack.clientAddress);

  const events = await network.all<RequestEvent>("request-events");
  const one = (event: RequestEvent) =>
    [
      event.method,
      event.path,
      event.route,
      event.status_code,
      event.user_agent,
      event.bytes_received,
      event.bytes_sent,
    ].join(" ");
  const same = (request: Answered) =>
    [
      request.method,
      request.path,
      request.route,
      request.status,
      request.userAgent,
      request.body.length,
      request.bytesSent,
    ].join(" ");
  expect(events.map(one).sort()).toEqual(answered.map(same).sort());
  for (const { path, latency_ms } of events) {
    const delay = /^\/sleep\/(\d+)$/.exec(path)?.[1];
    // Timers of the application may be a millisecond early.
    if (delay !== undefined) {
      expect(latency_ms).toBeGreaterThanOrEqual(Number(delay) - 1.5);
    }
  }
  const latencies = events.map(({ latency_ms }) => latency_ms).sort((a, b) => a - b);
  const p95 = latencies[Math.ceil(0.95 * latencies.length) - 1] ?? 0;
  expect(Math.abs((summary.p95_latency_ms ?? 0) - p95)).toBeLessThanOrEqual(p95 * 0.01 + 0.001);
  expect(summary.avg_latency_ms).toBeCloseTo(sum(latencies) / latencies.length, 1);
}, 180_000);

// Shows: docs/analytics.md#other-ingresses: a request can be queried half a second after its answer
test("a request can be asked about soon after it was answered", async () => {
  const took: number[] = [];
  for (let round = 0; round < (isLong ? 100 : 10); round += 1) {
    const from = new Date(Date.now() - 5);
    const network = networkAnalytics(call, exact.id, from);
    const path = `/soon/${uuid(round)}`;
    await send(exact.domain, {
      method: "GET",
      path,
      route: "/soon/:uuid",
      status: 200,
      userAgent: "soon",
      body: "",
    });
    const began = performance.now();
    await eventually(
      async () => {
        const events = await network.all<RequestEvent>("request-events");
        expect(events.filter((event) => event.path === path)).toHaveLength(1);
      },
      { within: 30_000, every: 50 },
    );
    took.push(performance.now() - began);
    await sleep(Math.random() * 200);
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => Math.round(took[Math.ceil(share * took.length) - 1] ?? 0);
  console.log(`from answer to query: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms of ${took.length}`);
});

/** Sends bytes as they are, which no client would. @returns the status, or undefined when there was no answer */
function sendRaw(path: string, headers: Record<string, string>): Promise<number | undefined> {
  const { hostname, port } = new URL(stack.ingressUrl);
  return new Promise((resolve) => {
    const outgoing = plain({ hostname, port, path, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode));
    });
    outgoing.on("error", () => resolve(undefined));
    outgoing.end();
  });
}

// Shows: docs/analytics.md#other-ingresses: a hostile client fills nothing and injects nothing
test(`a hostile client with ${hostile} paths and agents: bounded, whole, and nothing is injected`, async () => {
  const from = new Date(Date.now() - 1_000);
  const network = networkAnalytics(call, attacked.id, from);
  const kinds = [
    (number: number) => ({
      path: `/${Math.random().toString(36).slice(2)}/${number}`,
      agent: `bot ${number}`,
    }),
    (number: number) => ({ path: `/%ff%fe${number}`, agent: `\xff\xfe\xc3 ${number}` }),
    (number: number) => ({ path: `/${"a".repeat(8_000)}${number}`, agent: "b".repeat(8_000) + number }),
    (number: number) => ({ path: `/'%20OR%201=1;--${number}`, agent: `'); DROP TABLE events; -- ${number}` }),
    (number: number) => ({
      path: `/%00%0a{"RouterName":"x"}${number}`,
      agent: `"}\t{"ServiceName":"x"} ${number}`,
    }),
  ];
  const numbers = Array.from({ length: hostile }, (_, number) => number);
  const began = Date.now();
  const statuses = await inParallel(numbers, 16, (number) => {
    const { path, agent } = kinds[number % kinds.length]?.(number) ?? { path: "/", agent: "" };
    return sendRaw(path, { host: attacked.domain, "user-agent": agent, "x-long": "y".repeat(8_000) });
  });
  const minutes = Math.floor(Date.now() / 60_000) - Math.floor(began / 60_000) + 1;
  // What the ingress refused before it knew whose it was is nobody's.
  const events = await eventually(async () => {
    const found = await network.all<RequestEvent>("request-events");
    expect(found.length).toBe(statuses.filter((status) => status === 200).length);
    return found;
  });
  expect(events.length).toBeGreaterThan(hostile / 2);
  const [routes, agents] = await Promise.all([network.all<Item>("routes"), network.all<Item>("user-agents")]);
  expect(routes.length).toBeLessThanOrEqual((MAX_ROUTES_PER_MINUTE + 1) * minutes);
  expect(agents.length).toBeLessThanOrEqual((MAX_AGENTS_PER_MINUTE + 1) * minutes);
  for (const items of [routes, agents]) {
    expect(sum(items.map(({ requests }) => requests))).toBe(events.length);
  }
  for (const { path, user_agent, route } of events) {
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(512);
    expect(Buffer.byteLength(user_agent)).toBeLessThanOrEqual(256);
    expect(`${path}${user_agent}${route}`).not.toMatch(/\p{Cc}/u);
  }
  // Nobody else's requests have become more.
  expect((await networkAnalytics(call, exact.id, new Date(began)).summary()).summary.requests).toBe(0);
}, 180_000);
