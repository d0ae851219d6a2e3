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
  };
}

/** A client of `/v1` that signs in with one API key; it retries nothing. */
export function apiClient(apiKey: string = stack.apiKey) {
  return async function call<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const response = await fetch(`${stack.url}${path}`, {
      method,
      headers: {
        "x-api-key": apiKey,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Answer<T>["body"] };
  };
}

export interface CreatedProject {
  readonly project_id: string;
  readonly domain: string;
  readonly type: string;
}

export interface Project {
  readonly name: string;
  readonly status: string;
  readonly domain?: string;
  readonly instances: number;
}

/** A legal body of `POST /v1/project` for the sample application, on a plan that asks for least of a node. */
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

/** Deletes projects, ten at a time, each until the platform says that it is gone. */
export async function deleteProjects(
  call: ReturnType<typeof apiClient>,
  ids: readonly string[],
): Promise<void> {
  const left = [...ids];
  const worker = async (): Promise<void> => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const path = `/v1/project/${id}`;
      await eventually(async () => {
        const { status } = await call("DELETE", path);
        // 409: an earlier try had already done it.
        if (status !== 200 && status !== 409) throw new Error(`DELETE ${path} answered ${status}`);
      });
    }
  };
  await Promise.all(Array.from({ length: 10 }, worker));
}
