/**
 * What a deployed application has, while any of the platform's processes are killed at any moment (--long): each promise that says
 * "once", "none lost" or "in the end" is kept over all of them together.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  type Project,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { type Counter, createCounter } from "./support/counter.ts";
import { type Connection, createDatabase, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress, untilServing } from "./support/ingress.ts";
import { repeating, startKiller } from "./support/killer.ts";
import { allLines, searchLogs, writeLines } from "./support/logs.ts";
import { type Receiver, startReceiver } from "./support/receiver.ts";
import { createSleeper, untilAsleep } from "./support/sleep.ts";
import { stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

const ROUNDS = 4;
/** Milliseconds: a leader, an API server and a container's restart may be waited for several times each. */
const within = 600_000;

const call = repeating(apiClient());
const WEBHOOKS = "/v1/organization/webhooks";
const GROUPS = "/v1/organization/variable-groups";
const made: string[] = [];
let receiver: Receiver;
let webhook: { id: string; secret: string };
let group = "";
let counter: Counter;

beforeAll(async () => {
  if (!isLong) {
    return;
  }
  receiver = await startReceiver();
  const created = await call<typeof webhook>("POST", WEBHOOKS, {
    url: receiver.url,
    event_types: ["deployment.succeeded", "alert.firing", "alert.resolved"],
  });
  webhook = created.body.data as typeof webhook;
  receiver.trust(webhook.secret);
  const variables = [{ name: "LEVEL", value: "0" }];
  group = (await call<{ id: string }>("POST", GROUPS, { name: "Killed", variables })).body.data?.id ?? "";
  counter = await createCounter(call);
  made.push(counter.id);
});
afterAll(async () => {
  await deleteProjects(call, made);
  await Promise.all([
    group && call("DELETE", `${GROUPS}/${group}`),
    webhook && call("DELETE", `${WEBHOOKS}/${webhook.id}`),
  ]);
  await receiver?.close();
});

async function application(prefix: string, config: Record<string, unknown> = {}) {
  const { project_id: id, domain } = await createProject(call, httpProject(uniqueName(prefix), config));
  made.push(id);
  await untilStatus(call, id, "running");
  await untilServing(domain);
  return { id, domain };
}

async function changed(method: string, path: string, body: object): Promise<void> {
  expect(await call(method, path, body)).toMatchObject({ status: 200 });
}

type Read = Project & { readonly last_deployment?: { readonly pre_deploy?: { readonly status: string } } };

/** Versions, and a group's variables: each is deployed once, after its command ran once, and its event arrives. */
async function deploys(): Promise<string> {
  const name = uniqueName("deploys");
  const { id, domain } = await application("deploys", {
    pre_deploy_command: counter.command(name, 1_000, 0),
    pre_deploy_timeout_seconds: 300,
  });
  await changed("PATCH", `/v1/project/${id}/variable-groups`, { variable_group_ids: [group] });
  const served = traffic(domain, "/", 5);
  for (let round = 1; round <= ROUNDS; round += 1) {
    const image = round % 2 === 1 ? stack.imageHttpV2 : stack.imageHttp;
    await changed("PATCH", `/v1/project/${id}/image`, { image });
    await changed("PATCH", `${GROUPS}/${group}`, { variables: [{ name: "LEVEL", value: String(round) }] });
    await eventually(
      async () => {
        expect((await throughIngress(domain, "/env/LEVEL")).text).toBe(String(round));
        const { last_deployment: last, image: now, status } = (await readProject(call, id)) as Read;
        expect([now?.url, status, last?.status]).toEqual([image, "running", "succeeded"]);
        expect(last?.pre_deploy?.status).toBe("succeeded");
      },
      { within },
    );
  }
  const { sent, failures } = await served.stop();
  expect(failures).toEqual([]);
  const history = await call<readonly { id: string; status: string; pre_deploy?: { status: string } }[]>(
    "GET",
    `/v1/project/${id}/historic/deployments`,
  );
  const deployments = history.body.data ?? [];
  const migrated = deployments.filter(({ pre_deploy }) => pre_deploy?.status === "succeeded");
  // One of a version that another replaced while it ran was stopped, and had begun as well.
  const begun = deployments.filter(({ pre_deploy }) => pre_deploy && pre_deploy.status !== "skipped");
  const { length: reports } = await counter.reports(name);
  expect(reports).toBeGreaterThanOrEqual(migrated.length);
  expect(reports).toBeLessThanOrEqual(begun.length);
  const succeeded = deployments.filter(({ status }) => status === "succeeded").map((one) => one.id);
  await eventually(
    async () => {
      const events = receiver.events.filter(({ data }) => data.project_id === id);
      const arrived = new Map(events.map((event) => [event.id, String(event.data.deployment_id)]));
      // Each deployment once: a message that came twice has the same id.
      expect([...arrived.values()].sort()).toEqual(succeeded.toSorted());
    },
    { within },
  );
  return `${deployments.length} deployments, 0 of ${sent} requests failed`;
}

interface Run {
  readonly status: string;
  readonly exit_code?: number;
}

/** Commands that are started once each, however often the request is sent. */
async function runs(): Promise<string> {
  const { id } = await application("runs");
  for (let round = 1; round <= 2 * ROUNDS; round += 1) {
    const name = uniqueName("run");
    const key = { "idempotency-key": randomUUID() };
    const body = { command: counter.command(name, 5_000, 0) };
    const started = await call<{ run: { id: string } }>("POST", `/v1/project/${id}/runs`, body, key);
    const path = `/v1/project/${id}/runs/${started.body.data?.run.id}`;
    await eventually(
      async () => {
        const { body: read } = await call<{ run: Run }>("GET", path);
        expect(read.data?.run).toMatchObject({ status: "succeeded", exit_code: 0 });
      },
      { within },
    );
    expect(await counter.reports(name)).toEqual(["v1"]);
  }
  await eventually(
    async () => {
      const path = `/v1/project/${id}/runs/cost-summary`;
      const { body } = await call<{ totals: { executed_runs: number }[] }>("GET", path);
      expect(body.data?.totals[0]?.executed_runs).toBe(2 * ROUNDS);
    },
    { within },
  );
  return `${2 * ROUNDS} runs, each once and charged once`;
}

/** A database's password, renewed while an application that refers to it connects. */
async function renews(): Promise<string> {
  const database = await createDatabase(
    call,
    databaseProject("db-premium", { type_project: "postgresql", version: "17" }),
  );
  made.push(database.id);
  await untilReady(database, within);
  const envs = [{ name: "DATABASE_URL", value: `\${project:${database.id}.connection_string}` }];
  const { id, domain } = await application("renews", { envs, instances: 2 });
  const served = traffic(domain, "/connect/DATABASE_URL", 2);
  for (let round = 1; round <= ROUNDS / 2; round += 1) {
    const path = `/v1/project/${database.id}/database`;
    // One that was answered by nothing may be under way, and is refused a second time until it has ended.
    const password = await eventually(
      async () => {
        const renewed = await call<{ connection: Connection }>("POST", `${path}/credentials/renew`);
        expect(renewed.status).toBe(200);
        return renewed.body.data?.connection.password;
      },
      { within },
    );
    await eventually(
      async () => {
        const { text } = await throughIngress(domain, "/env/DATABASE_URL");
        expect(new URL(text).password).toBe(password);
        const { body } = await call("GET", `${path}/connection`);
        expect(body.data).not.toHaveProperty("previous_password_expires_at");
      },
      { within },
    );
    await untilStatus(call, id, "running");
  }
  const { sent, failures } = await served.stop();
  expect(failures).toEqual([]);
  return `${ROUNDS / 2} renewals, 0 of ${sent} requests with a connection failed`;
}

/** Lines of a log, each of which is found once. */
async function logs(): Promise<string> {
  const { id, domain } = await application("logs", { envs: [{ name: "SAMPLE_FAULTS", value: "1" }] });
  const [rounds, lines] = [5 * ROUNDS, 100];
  for (let round = 1; round <= rounds; round += 1) {
    await writeLines(domain, `round ${round} line`, lines);
    await sleep(5_000);
  }
  const last = `round ${rounds} line ${lines}`;
  await eventually(
    async () => expect((await searchLogs(call, id, { q: last })).data[0]?.message).toBe(last),
    { within },
  );
  const found = await allLines(call, id, { q: "round", order: "oldest" });
  const want = Array.from({ length: rounds * lines }, (_, index) => {
    const round = Math.floor(index / lines) + 1;
    return `round ${round} line ${(index % lines) + 1}`;
  });
  expect(found.map(({ message }) => message)).toEqual(want);
  return `${want.length} lines, each found once`;
}

/** An alert that fires and ends: one event each. */
async function alerts(): Promise<string> {
  const { id, domain } = await application("alerts");
  const rules = [{ metric: "error_rate", threshold: 50, for_seconds: 120 }];
  await changed("PUT", `/v1/project/${id}/alerts`, { alerts: rules });
  const until = (path: string, state: string) =>
    eventually(
      async () => {
        for (let index = 0; index < 10; index += 1) {
          await throughIngress(domain, path);
        }
        const { body } = await call<{ alerts: { state: string }[] }>("GET", `/v1/project/${id}/alerts`);
        expect(body.data?.alerts[0]?.state).toBe(state);
      },
      { within, every: 1_000 },
    );
  await until("/status/500", "firing");
  await until("/status/200", "ok");
  await eventually(
    async () => {
      const events = receiver.events.filter(({ data }) => data.project_id === id);
      const types = new Map(
        events.filter(({ type }) => type.startsWith("alert")).map((one) => [one.id, one.type]),
      );
      expect([...types.values()].sort()).toEqual(["alert.firing", "alert.resolved"]);
    },
    { within },
  );
  return "an alert fired once and ended once";
}

/** A project that sleeps, and answers who asks again where what held the request was killed. */
async function sleeps(): Promise<string> {
  const sleeper = await createSleeper(call, uniqueName("sleeps"));
  made.push(sleeper.id);
  for (let round = 1; round <= ROUNDS; round += 1) {
    await untilAsleep(call, sleeper);
    await eventually(async () => expect((await throughIngress(sleeper.domain)).status).toBe(200), { within });
  }
  return `${ROUNDS} sleeps`;
}

// Shows: docs/applications.md#one-off-runs: it begins once and is charged once, also over operators that are killed
test.skipIf(!isLong)(
  "operators, API servers, collectors, drains and activators are killed at random moments, and every promise is kept (--long)",
  async () => {
    const killer = startKiller();
    const paths = { deploys, runs, renews, logs, alerts, sleeps };
    const kept = await Promise.allSettled(Object.values(paths).map((path) => path()));
    const kills = await killer.stop();
    console.log(`killed: ${JSON.stringify(kills)}`);
    const names = Object.keys(paths);
    const broken = kept.flatMap((one, index) => {
      console.log(`${names[index]}: ${one.status === "fulfilled" ? one.value : one.reason}`);
      return one.status === "rejected" ? [`${names[index]}: ${String(one.reason).slice(0, 2_000)}`] : [];
    });
    expect(broken).toEqual([]);
    expect(
      Object.values(kills).filter((count) => count === 0),
      JSON.stringify(kills),
    ).toEqual([]);
    expect(receiver.refused).toEqual([]);
  },
  3_600_000,
);
