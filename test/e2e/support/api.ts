import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import { stack } from "./stack.ts";

/** An answer of `/v1`: the HTTP status and the parsed envelope. */
export interface Answer<T> {
  readonly status: number;
  readonly body: {
    readonly status: "success" | "failed";
    readonly message?: string;
    readonly code?: string;
    readonly data?: T;
    readonly errors?: readonly { readonly field: string; readonly message: string }[];
    readonly [member: string]: unknown;
  };
}

/** A client of `/v1` that signs in with one API key; it retries nothing. */
export function apiClient(apiKey: string = stack.apiKey) {
  return async function call<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(`${stack.url}${path}`, {
      method,
      headers: {
        "x-api-key": apiKey,
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.headers.get("content-type")?.includes("json")) {
      throw new Error(
        `${method} ${path} was answered by the ingress: ${response.status} ${text.trim().slice(0, 200)}`,
      );
    }
    return { status: response.status, body: JSON.parse(text) as Answer<T>["body"] };
  };
}

/**
 * Waits until every request of 10 s was answered by the API. Within 5 s after an outage of the apiserver the node controller may
 * declare the node NotReady, whose lease nobody could renew, and until the kubelet reports again no Service has an endpoint.
 */
export async function untilServed(call: Call): Promise<void> {
  await eventually(async () => {
    const end = performance.now() + 10_000;
    while (performance.now() < end) {
      expect((await call("GET", "/v1/project/plans")).status).toBe(200);
      await sleep(250);
    }
  });
}

/** How often a write is retried that waits for the operator. */
const RETRIES = 5;
/** What the API answers when the operator takes longer than a call waits, as on a machine that is far too busy. */
const PENDING = ["DOMAIN_RELEASE_PENDING", "ADDRESS_NOT_ASSIGNED", "CREATION_IN_PROGRESS"];

/** Retries a write that the operator has yet to finish, as the API documents it. Any other failure is the answer. */
export async function retried<T>(write: () => Promise<Answer<T>>): Promise<Answer<T>> {
  for (let retry = 1; ; retry += 1) {
    const answer = await write();
    if (!PENDING.includes(answer.body.code ?? "") || retry > RETRIES) {
      return answer;
    }
    console.log(`answered ${answer.status} ${answer.body.code}: retried`);
    await sleep(retry * 1_000);
  }
}

export interface CreatedProject {
  readonly project_id: string;
  readonly domain: string;
  readonly type: string;
}

export interface Project {
  readonly name: string;
  readonly description: string;
  readonly status: string;
  readonly plan: string;
  readonly exposure: "public" | "private";
  readonly domain?: string;
  readonly instances: number;
  readonly storage: { readonly persistent: boolean; readonly capacity: number };
  readonly image?: { readonly url: string; readonly is_public: boolean };
  readonly custom_domains?: readonly string[];
  readonly custom_domain_setup?: readonly CustomDomainSetup[];
  readonly last_deployment?: { readonly id: string; readonly status: string; readonly message?: string };
}

export interface CustomDomainSetup {
  readonly hostname: string;
  readonly status: string;
  readonly ssl_status: string;
  readonly dns_records: readonly { readonly type: string; readonly name: string; readonly value: string }[];
}

type Call = ReturnType<typeof apiClient>;

/** A name that no other test run has. */
export const uniqueName = (prefix: string): string => `${prefix}-${randomBytes(4).toString("hex")}`;

/** Creates a project. @throws when the answer is not 201 */
export async function createProject(call: Call, body: unknown): Promise<CreatedProject> {
  const key = { "idempotency-key": randomUUID() };
  const created = await retried(() => call<CreatedProject>("POST", "/v1/project", body, key));
  expect(created).toMatchObject({ status: 201, body: { status: "success" } });
  return created.body.data as CreatedProject;
}

export async function readProject(call: Call, id: string): Promise<Project> {
  const read = await call<Project>("GET", `/v1/project/${id}`);
  expect(read.status).toBe(200);
  return read.body.data as Project;
}

/** Waits until the project has the status, and gives the project. */
export function untilStatus(call: Call, id: string, status: string): Promise<Project> {
  return eventually(async () => {
    const project = await readProject(call, id);
    expect(project.status).toBe(status);
    return project;
  });
}

/** A legal body of `POST /v1/project` for the sample application, on the plan that requests least of a node. */
export function httpProject(name: string, config: Readonly<Record<string, unknown>> = {}) {
  return {
    name,
    plan: "basic",
    payment_mode: "hourly",
    config: {
      type_project: "http",
      exposure: "public",
      image: { url: stack.imageHttp, is_public: true },
      port: 8080,
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      envs: [],
      network_access: {
        ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }],
        ingress_black_list: [],
      },
      ...config,
    },
  };
}

/** Deletes projects, ten at a time, each until the platform answers that it is deleted. */
export async function deleteProjects(call: Call, ids: readonly string[]): Promise<void> {
  const left = [...ids];
  const worker = async (): Promise<void> => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const path = `/v1/project/${id}`;
      await eventually(async () => {
        const { status } = await call("DELETE", path);
        // 202: Valkey, in the background. 409: an earlier try had already done it.
        if (status !== 200 && status !== 202 && status !== 409) {
          throw new Error(`DELETE ${path} answered ${status}`);
        }
      });
    }
  };
  await Promise.all(Array.from({ length: 10 }, worker));
}
