import { afterAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { namespaceOf, stack } from "./support/stack.ts";

/** Workers: instances without a port. The sample application is one that nobody asks anything but its own readiness command. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const worker = (name: string) => ({
  name,
  plan: "basic",
  payment_mode: "hourly",
  config: {
    type_project: "worker",
    image: { url: stack.imageHttp, is_public: true },
    instances: 1,
    storage: { persistent: false, capacity: 1 },
    envs: [{ name: "QUEUE", value: "mail" }],
    readiness: { command: ["/sample-http", "healthy"] },
  },
});

/** Its newest deployment, once that has succeeded and is not the one before. */
const deployed = (id: string, before?: string) =>
  eventually(async () => {
    const { last_deployment: last, status } = await readProject(call, id);
    expect(last?.id).not.toBe(before);
    expect(last?.status).toBe("succeeded");
    expect(status).toBe("running");
    return last?.id ?? "";
  });

const scale = (name: string, instances: number) =>
  cluster.objects.patch(
    {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Project",
      metadata: { namespace, name },
      spec: { instances },
    } as never,
    undefined,
    undefined,
    undefined,
    undefined,
    "application/merge-patch+json",
  );

const podsOf = async (id: string) =>
  (await cluster.core.listNamespacedPod({ namespace, labelSelector: `slipway.dev/project=${id}` })).items;

const messages = async (id: string): Promise<string> =>
  JSON.stringify((await call("GET", `/v1/project/${id}/logs`)).body);

/** Follows the project's log until it is stopped; gives all that was written. */
function followed(id: string) {
  const end = new AbortController();
  let written = "";
  const reading = (async () => {
    const headers = { "x-api-key": stack.apiKey, accept: "text/event-stream" };
    const url = `${stack.url}/v1/project/${id}/logs?follow=true`;
    const { body } = await fetch(url, { headers, signal: end.signal });
    for await (const chunk of body ?? []) {
      written += Buffer.from(chunk).toString("utf8");
    }
  })().catch((error: unknown) => {
    if (!end.signal.aborted) {
      throw error;
    }
  });
  return {
    written: () => written,
    stop: async () => {
      end.abort();
      await reading;
    },
  };
}

// Shows: docs/applications.md#workers: created like an HTTP project, without port, domain
// Shows: docs/applications.md#workers: an instance that stops is sent SIGTERM without delay
// Shows: docs/applications.md#workers: instances, pause, deployments, rollback, logs and deletion are
test("a worker runs without an address, is scaled, deployed, paused, rolled back and deleted", async () => {
  const created = await createProject(call, worker(uniqueName("worker")));
  const { project_id: id } = created;
  made.push(id);
  expect(created).toEqual({ project_id: id, type: "worker" });
  expect(await untilStatus(call, id, "running")).not.toHaveProperty("domain");
  const first = await deployed(id);
  const labelSelector = `slipway.dev/project=${id}`;
  expect((await cluster.core.listNamespacedService({ namespace, labelSelector })).items).toEqual([]);
  expect((await cluster.networking.listNamespacedIngress({ namespace, labelSelector })).items).toEqual([]);
  await eventually(async () => expect(await messages(id)).toContain("sample-http v1 listening"));

  await scale(id, 3);
  await eventually(async () => {
    const { status, additional_info: info } = (await readProject(call, id)) as never as {
      status: string;
      additional_info: { current_instances: number };
    };
    expect([status, info.current_instances]).toEqual(["running", 3]);
    expect((await podsOf(id)).every(({ status: pod }) => pod?.containerStatuses?.[0]?.ready)).toBe(true);
  });

  const log = followed(id);
  await eventually(async () => expect(log.written().match(/v1 listening/g)).toHaveLength(3));
  expect((await call("PATCH", `/v1/project/${id}/image`, { image: stack.imageHttpV2 })).status).toBe(200);
  await deployed(id, first);
  await eventually(async () => expect(log.written().match(/sample-http stops/g)).toHaveLength(3));
  expect(log.written().match(/v2 listening/g)).toHaveLength(3);
  await log.stop();

  await scale(id, 1);
  expect((await call("POST", `/v1/project/${id}/pause`)).status).toBe(200);
  await untilStatus(call, id, "stopped");
  await eventually(async () => expect(await podsOf(id)).toEqual([]));
  expect((await call("POST", `/v1/project/${id}/resume`)).status).toBe(200);
  await untilStatus(call, id, "running");

  const second = (await readProject(call, id)).last_deployment?.id;
  const back = await call("POST", `/v1/project/${id}/rollback`, { deployment_id: first });
  expect(back.status).toBe(200);
  await deployed(id, second);
  expect((await readProject(call, id)).image?.url).toBe(stack.imageHttp);
  await eventually(async () => expect(await messages(id)).toContain("sample-http v1 listening"));

  expect((await call("DELETE", `/v1/project/${id}`)).status).toBe(200);
  expect(await podsOf(id)).toEqual([]);
  expect((await cluster.apps.listNamespacedDeployment({ namespace, labelSelector })).items).toEqual([]);
});

// Shows: docs/applications.md#command: it runs without a shell, in the image's working directory
// Shows: docs/applications.md#command: another command is a deployment, and a rollback restores it
// Shows: docs/applications.md#command: its words stay as they are: neither `$` nor `$(NAME)` means anything
test("an image runs with a command of the project's own, another one, and after a rollback the first", async () => {
  const { config, ...body } = worker(uniqueName("worker"));
  const { readiness: _, ...unprobed } = config;
  // $0 is the word after the script, which nothing has replaced.
  const saying = (word: string) => ["sh", "-c", `echo "says $0"; exec sleep 3600`, word];
  const { project_id: id } = await createProject(call, {
    ...body,
    config: {
      ...unprobed,
      image: { url: stack.imageJob, is_public: true },
      command: saying("$(QUEUE) $$ first"),
      termination_grace_period_seconds: 1,
    },
  });
  made.push(id);
  const first = await deployed(id);
  await eventually(async () => expect(await messages(id)).toContain("says $(QUEUE) $$ first"));
  const answer = await call("PATCH", `/v1/project/${id}/command`, { command: saying("second") });
  expect(answer.status).toBe(200);
  const second = await deployed(id, first);
  await eventually(async () => expect(await messages(id)).toContain("says second"));
  expect((await call("POST", `/v1/project/${id}/rollback`, { deployment_id: first })).status).toBe(200);
  await deployed(id, second);
  const [pod] = (await podsOf(id)).filter(({ metadata }) => !metadata?.deletionTimestamp);
  expect(pod?.spec?.containers[0]?.command?.at(-1)).toBe("$$(QUEUE) $$$$ first");
});

// Shows: docs/applications.md#workers: without a command an instance is ready that has run for 5 seconds
test("a version of a worker that ends within seconds replaces nothing", async () => {
  const { config, ...body } = worker(uniqueName("worker"));
  const { readiness: _, ...unprobed } = config;
  const { project_id: id } = await createProject(call, { ...body, config: unprobed });
  made.push(id);
  await untilStatus(call, id, "running");
  const [serving] = await podsOf(id);
  // The Go runtime of the sample application refuses to start with it.
  const broken = [{ name: "GOMEMLIMIT", value: "no number" }];
  expect((await call("PATCH", `/v1/project/${id}/envs`, { envs: broken })).status).toBe(200);
  await untilStatus(call, id, "failing");
  const kept = (await podsOf(id)).find(({ metadata }) => metadata?.uid === serving?.metadata?.uid);
  expect(kept?.status?.containerStatuses?.[0]).toMatchObject({ ready: true, restartCount: 0 });
  expect((await call("PATCH", `/v1/project/${id}/envs`, { envs: [] })).status).toBe(200);
  await untilStatus(call, id, "running");
});

// Shows: docs/applications.md#workers: the plans, prices and limits are those of HTTP projects
test("a worker that uses its processor gets another instance", { timeout: 300_000 }, async () => {
  const { config, ...body } = worker(uniqueName("worker"));
  const { project_id: id } = await createProject(call, {
    ...body,
    plan: "premium",
    config: {
      ...config,
      envs: [{ name: "SAMPLE_BUSY_PERCENT", value: "20" }],
      // A twentieth of the plan's processor.
      autoscaling: { enabled: true, max_instances: 2, cpu_target_percentage: 5 },
    },
  });
  made.push(id);
  await untilStatus(call, id, "running");
  await eventually(
    async () => {
      expect((await podsOf(id)).filter(({ status }) => status?.containerStatuses?.[0]?.ready)).toHaveLength(
        2,
      );
      expect((await readProject(call, id)).status).toBe("running");
    },
    { within: 240_000 },
  );
});
