import { expect } from "vitest";
import { startOtlpReceiver } from "../../../kit/drains/receivers.ts";
import type { TestSmtpServer } from "../../../kit/servers/smtp.ts";
import {
  type apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "../api.ts";
import { type Counter, createCounter } from "../counter.ts";
import { allowReceivers, RECEIVERS_HOST } from "../drains.ts";
import { eventually } from "../eventually.ts";
import { untilServing } from "../ingress.ts";
import { codeOf, RECIPIENTS, startMailServer } from "../mail.ts";
import { admin } from "../organization.ts";
import { type Receiver, startReceiver } from "../receiver.ts";
import { stack } from "../stack.ts";

/** What the paths have in common that are used while processes are killed. */

export const ROUNDS = 4;
/** Milliseconds: a leader, an API server and a container's restart may be waited for several times each. */
export const within = 600_000;

const WEBHOOKS = "/v1/organization/webhooks";
const EVENTS = ["deployment.succeeded", "alert.firing", "alert.resolved"];
export const GROUPS = "/v1/organization/variable-groups";
export const DRAINS = "/v1/organization/log-drains";

type Call = ReturnType<typeof apiClient>;

export interface World {
  readonly call: Call;
  /** Of webhooks. */
  readonly receiver: Receiver;
  readonly mails: TestSmtpServer;
  /** Of log drains. */
  readonly drained: Awaited<ReturnType<typeof startOtlpReceiver>>;
  /** Id of a group of variables. */
  readonly group: string;
  readonly counter: Counter;
  /** A key that may run commands in instances. */
  readonly execKey: string;
  /** Ids of projects, which are deleted at the end. */
  readonly made: string[];
  /** What is undone at the end, the last first. */
  readonly undo: (() => Promise<unknown>)[];
  /** Creates an application, and waits until it serves. */
  application(prefix: string, config?: object, plan?: string): Promise<{ id: string; domain: string }>;
  /** @throws when it is not answered with 200 */
  changed(method: string, path: string, body: object): Promise<void>;
}

/** Creates it, before anything is killed. What it made by then is undone where it fails. */
export async function createWorld(call: Call): Promise<World> {
  const undo: World["undo"] = [];
  try {
    return await create(call, undo);
  } catch (error) {
    await closeWorld({ undo });
    throw error;
  }
}

/** Deletes what was made. */
export async function closeWorld({ undo }: Pick<World, "undo">): Promise<void> {
  for (const one of undo.splice(0).reverse()) {
    await one();
  }
}

async function create(call: Call, undo: World["undo"]): Promise<World> {
  const created = async <T extends { id: string }>(path: string, body: object): Promise<T> => {
    const answer = await call<T>("POST", path, body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    const data = answer.body.data as T;
    undo.push(() => call("DELETE", `${path}/${data.id}`));
    return data;
  };
  const receiver = await startReceiver();
  undo.push(receiver.close);
  const mails = await startMailServer();
  undo.push(mails.close);
  const drained = await startOtlpReceiver(undefined, RECEIVERS_HOST);
  undo.push(drained.close);
  await allowReceivers([drained.port]);

  const webhook = await created<{ id: string; secret: string }>(WEBHOOKS, {
    url: receiver.url,
    event_types: EVENTS,
  });
  receiver.trust(webhook.secret);
  const email = `${uniqueName("on-call")}@example.com`;
  const recipient = await created<{ id: string }>(RECIPIENTS, { email, event_types: EVENTS });
  const code = await eventually(async () => {
    const found = codeOf(mails.mails.find(({ to }) => to.includes(email)));
    expect(found).toBeDefined();
    return found;
  });
  expect((await call("POST", `${RECIPIENTS}/${recipient.id}/confirm`, { code })).status).toBe(200);
  const variables = [{ name: "LEVEL", value: "0" }];
  const { id: group } = await created<{ id: string }>(GROUPS, { name: uniqueName("killed"), variables });
  const options = ["--organization", stack.organization, "--grant", "project.exec on project:*"];
  const key = await admin<{ api_key_id: string; api_key: string }>("api-key", "create", ...options);
  undo.push(() => admin("api-key", "revoke", "--id", key.api_key_id));

  const made: string[] = [];
  undo.push(() => deleteProjects(call, made));
  const counter = await createCounter(call);
  made.push(counter.id);
  return {
    ...{ call, receiver, mails, drained, group, counter, execKey: key.api_key, made, undo },
    application: async (prefix, config = {}, plan = undefined) => {
      const body = httpProject(uniqueName(prefix), { ...config });
      const { project_id: id, domain } = await createProject(call, { ...body, ...(plan && { plan }) });
      made.push(id);
      await untilStatus(call, id, "running");
      await untilServing(domain);
      return { id, domain };
    },
    changed: async (method, path, body) => {
      expect(await call(method, path, body)).toMatchObject({ status: 200 });
    },
  };
}
