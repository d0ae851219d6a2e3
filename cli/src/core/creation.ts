import type { operations, Slipway } from "@slipway/sdk";

export type CreationBody = operations["createProject"]["requestBody"]["content"]["application/json"];

/** What is open to all, as the platform writes it. */
const OPEN = { ingress_white_list: [{ cidr: "0.0.0.0/0", description: "Everybody" }] };

/** What a type's creation needs and no description has to say. Pure. */
export function withDefaults(body: Record<string, unknown>): Record<string, unknown> {
  const config = (body.config ?? {}) as Record<string, unknown>;
  const type = config.type_project ?? "http";
  const defaults = {
    http: {
      exposure: "public",
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      envs: [],
      network_access: OPEN,
    },
    worker: { instances: 1, storage: { persistent: false, capacity: 1 }, envs: [] },
    job: { storage: { persistent: false, capacity: 1 }, envs: [] },
    valkey: {},
  }[String(type)] ?? {
    instances: 1,
    storage: { persistent: true, capacity: 10 },
    envs: [],
    network_access: OPEN,
  };
  return {
    payment_mode: type === "job" ? "per_minute" : "hourly",
    ...body,
    config: { type_project: type, ...defaults, ...config },
  };
}

/** Creates a project; a repetition with the same key creates no other one. */
export async function createProject(slipway: Slipway, body: Record<string, unknown>, key: string) {
  const { data } = await slipway.POST("/v1/project", {
    params: { header: { "idempotency-key": key } },
    // The server checks what a person wrote, and reports each rule that it breaks.
    body: body as CreationBody,
  });
  return data;
}
