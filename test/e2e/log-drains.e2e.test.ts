import { afterAll, beforeAll, expect, test } from "vitest";
import {
  messageText,
  type OtlpAnswer,
  startOtlpReceiver,
  startSyslogReceiver,
} from "../kit/drains/receivers.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { allowReceivers, RECEIVERS_HOST } from "./support/drains.ts";
import { eventually } from "./support/eventually.ts";
import { untilServing } from "./support/ingress.ts";
import { writeLines } from "./support/logs.ts";
import { systemNamespace } from "./support/operator.ts";
import { stack } from "./support/stack.ts";

/** Log drains: from real containers over the store to receivers of the test's own, while the process that delivers is killed. */

const DRAINS = "/v1/organization/log-drains";
/** Within the rate of a project, so that none is left out. */
const LINES = 200;
const call = apiClient();
const projects: string[] = [];
const drains: string[] = [];
const undo: (() => Promise<unknown>)[] = [];
let isAway = false;
let otlp: Awaited<ReturnType<typeof startOtlpReceiver>>;
let syslog: Awaited<ReturnType<typeof startSyslogReceiver>>;

beforeAll(async () => {
  otlp = await startOtlpReceiver((): OtlpAnswer => ({ status: isAway ? 503 : 200 }), RECEIVERS_HOST);
  syslog = await startSyslogReceiver(() => (isAway ? "away" : "take"), RECEIVERS_HOST);
  undo.push(otlp.close, syslog.close);
  await allowReceivers([otlp.port, syslog.port]);
}, 300_000);
afterAll(async () => {
  for (const id of drains) {
    await call("DELETE", `${DRAINS}/${id}`);
  }
  await deleteProjects(call, projects);
  await Promise.all(undo.map((one) => one()));
});

async function createDrain(body: object): Promise<string> {
  const answer = await call<{ id: string }>("POST", DRAINS, body);
  expect(answer.status).toBe(201);
  const id = answer.body.data?.id ?? "";
  drains.push(id);
  return id;
}

const statusOf = async (id: string) =>
  (await call<{ status: string; message?: string }>("GET", `${DRAINS}/${id}`)).body.data;

/** Kills the process that delivers: its pod is gone with SIGKILL. */
const kill = () =>
  cluster.core.deleteCollectionNamespacedPod({
    namespace: systemNamespace,
    labelSelector: "app.kubernetes.io/name=slipway-log-drains",
    gracePeriodSeconds: 0,
  });

// Shows: docs/log-drains.md#at-least-once: whenever the process is killed
// Shows: docs/log-drains.md#at-least-once: what comes while a receiver is away
test("each line of an application arrives at both receivers over killed processes, and a time without receivers", async () => {
  const envs = [{ name: "SAMPLE_FAULTS", value: "1" }];
  const app = await createProject(call, httpProject(uniqueName("drained"), { envs }));
  projects.push(app.project_id);
  await untilStatus(call, app.project_id, "running");
  await untilServing(app.domain);
  const otlpDrain = await createDrain({
    name: "OTLP",
    project_id: app.project_id,
    otlp_http: { endpoint: `https://${RECEIVERS_HOST}:${otlp.port}` },
    headers: [{ name: "Authorization", value: "Bearer of-the-test" }],
    ca: otlp.ca,
  });
  const syslogDrain = await createDrain({
    name: "Syslog",
    project_id: app.project_id,
    syslog: { host: RECEIVERS_HOST, port: syslog.port },
    ca: syslog.ca,
  });
  const wanted: string[] = [];
  const write = async (text: string) => {
    await writeLines(app.domain, text, LINES);
    wanted.push(...Array.from({ length: LINES }, (_, index) => `${text} ${index + 1}`));
  };
  for (let round = 0; round < 4; round += 1) {
    await write(`round ${round}`);
    await kill();
  }
  isAway = true;
  await write("away");
  await eventually(async () => {
    expect(await statusOf(otlpDrain)).toMatchObject({
      status: "failing",
      message: "the receiver answers with 503",
    });
    expect(await statusOf(syslogDrain)).toMatchObject({ status: "failing" });
  });
  await kill();
  isAway = false;
  const missing = (got: readonly string[]) => {
    const found = new Set(got);
    return wanted.filter((text) => !found.has(text));
  };
  await eventually(() => {
    expect(missing(otlp.texts)).toEqual([]);
    expect(missing(syslog.messages.map(messageText))).toEqual([]);
    return Promise.resolve();
  });
  expect(otlp.requests.at(-1)?.headers.authorization).toBe("Bearer of-the-test");
  expect(syslog.messages[0]).toContain(`organization="${stack.organization}" project="${app.project_id}"`);
  await eventually(async () => expect((await statusOf(otlpDrain))?.status).toBe("delivering"));
}, 900_000);
