/** Webhooks on the stack: what happens to projects arrives, signed, at a receiver that verifies it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { createGitProject, untilEnded } from "./support/builds.ts";
import { eventually } from "./support/eventually.ts";
import { connectRepository, createRepository, type Repository } from "./support/git.ts";
import { replaceLeader } from "./support/operator.ts";
import { type ReceivedEvent, type Receiver, startReceiver } from "./support/receiver.ts";
import { stack } from "./support/stack.ts";

const call = apiClient();
const WEBHOOKS = "/v1/organization/webhooks";
const made: string[] = [];
let receiver: Receiver;
let webhook: { id: string; secret: string };
let repository: Repository | undefined;

beforeAll(async () => {
  receiver = await startReceiver();
  const created = await call<typeof webhook>("POST", WEBHOOKS, {
    url: receiver.url,
    event_types: ["deployment.succeeded", "deployment.failed", "build.failed", "project.crash_loop"],
  });
  expect(created.status).toBe(201);
  webhook = created.body.data as typeof webhook;
  receiver.trust(webhook.secret);
});
afterAll(async () => {
  if (webhook) {
    await call("DELETE", `${WEBHOOKS}/${webhook.id}`);
  }
  await deleteProjects(call, made);
  await repository?.remove();
  await receiver?.close();
});

interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
  readonly response_code?: number;
  readonly event_type: string;
}
async function deliveries(): Promise<readonly Delivery[]> {
  const path = `${WEBHOOKS}/${webhook.id}/deliveries?limit=50`;
  const { status, body } = await call<{ deliveries: Delivery[] }>("GET", path);
  expect(status).toBe(200);
  return body.data?.deliveries ?? [];
}
/** Waits for an event of a project, each of which has one id however often it came. */
const arrived = (type: string, project: string, within?: number): Promise<ReceivedEvent> =>
  eventually(
    async () => {
      const found = receiver.events.filter(
        (event) => event.type === type && event.data.project_id === project,
      );
      expect(found.length).toBeGreaterThan(0);
      expect(new Set(found.map(({ id }) => id)).size).toBe(1);
      return found[0] as ReceivedEvent;
    },
    { within },
  );
async function created(body: object): Promise<string> {
  const { project_id } = await createProject(call, body);
  made.push(project_id);
  return project_id;
}

test("a test event arrives, and is sent again on request under its id", async () => {
  const tested = await call<{ id: string }>("POST", `${WEBHOOKS}/${webhook.id}/test`);
  expect(tested.status).toBe(202);
  const id = tested.body.data?.id;
  await eventually(async () => expect(receiver.events.map((event) => event.id)).toContain(id));
  await eventually(async () => {
    expect((await deliveries()).find((one) => one.id === id)).toMatchObject({
      status: "succeeded",
      response_code: 204,
    });
  });
  expect((await call("POST", `${WEBHOOKS}/${webhook.id}/deliveries/${id}/redeliver`)).status).toBe(202);
  await eventually(async () => expect(receiver.events.filter((event) => event.id === id)).toHaveLength(2));
});

test("a deployment arrives although the receiver was away and the leading operator is killed", async () => {
  receiver.answer(503);
  const id = await created(httpProject(uniqueName("notifies"), { exposure: "private" }));
  await untilStatus(call, id, "running");
  await eventually(async () => {
    const tried = (await deliveries()).filter(({ event_type }) => event_type === "deployment.succeeded");
    expect(tried.some(({ attempts, response_code }) => attempts > 0 && response_code === 503)).toBe(true);
  });
  const replaced = replaceLeader();
  receiver.answer(204);
  await replaced;
  // The first pause is 5 s; where two attempts have failed by now, the second one is five minutes.
  const event = await arrived("deployment.succeeded", id, 480_000);
  await eventually(
    async () => {
      expect((await deliveries()).find((one) => one.id === event.id)?.status).toBe("succeeded");
    },
    { within: 480_000 },
  );
}, 1_200_000);

test("a crash loop and the failed deployment arrive, each as one event", async () => {
  // The image of a job ends by itself: as an application it ends again and again.
  const image = { url: stack.imageJob, is_public: true };
  const id = await created(httpProject(uniqueName("crashes"), { exposure: "private", image }));
  const crashed = await arrived("project.crash_loop", id, 300_000);
  expect(crashed.data.reason).toMatch(/ContainerCrashing|OutOfMemory/);
  const failed = await arrived("deployment.failed", id, 300_000);
  expect(failed.data).toMatchObject({ image: stack.imageJob });
});

test("a build that fails arrives", async () => {
  repository = await createRepository(uniqueName("notifies"), { "package.json": "{}" });
  const source = await connectRepository(repository);
  const { project_id, build_id } = await createGitProject(call, uniqueName("unbuilt"), source);
  made.push(project_id);
  expect((await untilEnded(call, project_id, build_id)).status).toBe("failed");
  const { data } = await arrived("build.failed", project_id);
  expect(data).toMatchObject({ build_id, error_code: expect.any(String) });
});

test("no delivery was signed otherwise", () => {
  expect(receiver.refused).toEqual([]);
});
