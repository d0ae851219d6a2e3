import { setTimeout as sleep } from "node:timers/promises";
import type { ProjectStatus } from "@slipway/crds";
import { request } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
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
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { leader, systemNamespace } from "./support/operator.ts";
import { setOperator } from "./support/operator-settings.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
let restore = (): Promise<void> => Promise.resolve();

beforeAll(async () => {
  // The last lines of an instance are known where pods are made from this version on.
  restore = await setOperator({ SLIPWAY_POD_TEMPLATE_VERSION: "2" });
});
afterAll(async () => {
  await deleteProjects(call, made);
  await restore();
});

interface Reported extends Project {
  readonly last_termination?: Readonly<Record<string, unknown>>;
}

/** Creates a project whose instances can be asked to hang or to exit. */
async function created(prefix: string, config: Record<string, unknown>) {
  const envs = [{ name: "SAMPLE_FAULTS", value: "1" }];
  const project = await createProject(call, httpProject(uniqueName(prefix), { envs, ...config }));
  made.push(project.project_id);
  return project;
}

/** Asks one instance for a fault. @returns its name, where it answers */
async function ask(domain: string, path: string): Promise<string | undefined> {
  const answer = await request(`${stack.ingressUrl}${path}`, { method: "POST", headers: { host: domain } });
  const text = await answer.body.text();
  return answer.statusCode === 200 ? (JSON.parse(text) as { hostname: string }).hostname : undefined;
}

async function statusOf(name: string): Promise<ProjectStatus> {
  const where = { group: "slipway.dev", version: "v1alpha1", namespace, plural: "projects", name };
  const { status } = (await cluster.custom.getNamespacedCustomObject(where)) as { status: ProjectStatus };
  return status;
}

/** Restarts for a reason, as the leading operator counts them. */
async function counted(reason: string): Promise<number> {
  const where = { name: `${await leader()}:9090`, namespace: systemNamespace, path: "metrics" };
  const text = await cluster.core.connectGetNamespacedPodProxyWithPath(where);
  const [, count] =
    new RegExp(`^slipway_instance_restarts_total{reason="${reason}"} (\\d+)$`, "m").exec(text) ?? [];
  return Number(count);
}

const notesOf = async (project: string): Promise<string[]> => {
  const fieldSelector = `involvedObject.name=${project},reason=InstanceRestarted`;
  const { items } = await cluster.core.listNamespacedEvent({ namespace, fieldSelector });
  return items.map(({ message = "" }) => message);
};

const lastTermination = async (id: string) => ((await readProject(call, id)) as Reported).last_termination;

// Shows: docs/applications.md#create: `config.healthcheck.liveness_path`: an instance that hangs is
test.concurrent("an instance that hangs is restarted within 60 s while the other serves on", async () => {
  const { project_id: id, domain } = await created("hangs", {
    instances: 2,
    healthcheck: { enabled: true, path: "/healthz", liveness_path: "/livez" },
  });
  await untilStatus(call, id, "running");
  const before = await counted("LivenessFailed");
  const name = (await ask(domain, "/hang")) ?? "";
  const hungAt = performance.now();
  const pod = () => cluster.core.readNamespacedPod({ namespace, name });
  await eventually(async () => {
    const conditions = (await pod()).status?.conditions;
    expect(conditions?.find(({ type }) => type === "Ready")?.status).toBe("False");
  });
  const unreadyAfter = performance.now() - hungAt;
  // Until the ingress knows.
  await sleep(5_000);
  const running = traffic(domain);
  await eventually(async () => {
    const [app] = (await pod()).status?.containerStatuses ?? [];
    expect(app?.restartCount).toBe(1);
    expect(app?.state?.running).toBeDefined();
  });
  const restartedAfter = performance.now() - hungAt;
  await eventually(async () => expect((await pod()).status?.containerStatuses?.[0]?.ready).toBe(true));
  const { sent, failures } = await running.stop();
  console.log(
    `not ready after ${Math.round(unreadyAfter)} ms, runs again after ${Math.round(restartedAfter)} ms; ${sent} requests, ${failures.length} failed`,
  );
  expect(restartedAfter).toBeLessThan(60_000);
  expect(failures).toEqual([]);
  const reported = { instance: name, exit_code: 137, reason: "LivenessFailed", restarts: 1 };
  await eventually(async () => expect(await lastTermination(id)).toMatchObject(reported));
  await eventually(async () =>
    expect(await notesOf(id)).toEqual([
      `Instance ${name} did not answer its liveness path: exit code 137, restart 1.`,
    ]),
  );
  expect(await counted("LivenessFailed")).toBe(before + 1);
});

test.concurrent("an instance that exits again and again shows its exit code and its last lines", async () => {
  const { project_id: id, domain } = await created("exits", { instances: 1 });
  await untilStatus(call, id, "running");
  expect(await lastTermination(id)).toBeUndefined();
  for (const restarts of [1, 2]) {
    // While it is down, the ingress answers; the request that ends it has no answer of its own.
    await eventually(async () => {
      await ask(domain, "/exit/3").catch(() => undefined);
      expect((await statusOf(id)).lastTermination?.restarts).toBeGreaterThanOrEqual(restarts);
    });
    const { lastTermination: last } = await statusOf(id);
    expect(last).toMatchObject({ exitCode: 3, reason: "Error" });
    expect(last?.lastLines).toMatch(
      /^sample-http v1 listening on .*\n(.*\n)*exits with 3, as it was asked to$/,
    );
    await eventually(async () =>
      expect(await lastTermination(id)).toMatchObject({
        instance: last?.instance,
        exit_code: 3,
        reason: "Error",
        last_lines: expect.stringMatching(/exits with 3, as it was asked to$/),
      }),
    );
  }
  await eventually(async () =>
    expect(
      (await notesOf(id)).some((note) => note.includes("ended by itself: exit code 3, restart 2.")),
    ).toBe(true),
  );
});

// Shows: docs/applications.md#create: `config.healthcheck.startup_timeout_seconds`: an instance that
test.concurrent("an instance that does not start in time fails its deployment", async () => {
  const started = performance.now();
  const { project_id: id } = await created("late", {
    healthcheck: { enabled: true, path: "/status/503", startup_timeout_seconds: 10 },
  });
  await eventually(async () => {
    const { last_deployment: last } = await readProject(call, id);
    expect(last?.status).toBe("failed");
    expect(last?.message).toContain("did not start to serve within the time");
  });
  const after = performance.now() - started;
  console.log(`the deployment had failed after ${Math.round(after)} ms`);
  expect(after).toBeLessThan(90_000);
  await eventually(async () => expect(await lastTermination(id)).toMatchObject({ reason: "StartupTimeout" }));
});
