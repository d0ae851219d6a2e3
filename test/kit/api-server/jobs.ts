import { expect } from "vitest";
import { exampleJobBody } from "./harness.ts";
import { OperatorActor } from "./job-runs.ts";
import type { RealHarness } from "./real-harness.ts";

export type Answer = Promise<{
  statusCode: number;
  body: string;
  headers: Record<string, unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the application answers; the tests say what
  json: () => any;
}>;

/** A job, and a client of it. */
export interface Job {
  id: string;
  organizationId: string;
  headers: Record<string, string>;
  actor: OperatorActor;
  /** Calls `/v1/project/<id>/<operation>`, or the project itself. */
  send: (
    method: "GET" | "POST" | "PATCH" | "DELETE",
    operation?: string,
    payload?: object,
    headers?: Record<string, string>,
  ) => Answer;
}

/** `[status, code]` of a refusal. */
export const refusalOf = async (answer: Answer): Promise<[number, string]> => {
  const response = await answer;
  return [response.statusCode, response.json().code];
};

export function postProject(
  harness: RealHarness,
  headers: Record<string, string>,
  payload: object,
  key?: string,
): Answer {
  const keyed = key === undefined ? {} : { "idempotency-key": key };
  return harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...headers, ...keyed },
    payload,
  });
}

/** A job of an organization of its own, created over `/v1`. */
export async function createJob(
  harness: RealHarness,
  body: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
): Promise<Job> {
  const { id: organizationId, headers } = await harness.organization();
  const created = await postProject(harness, headers, exampleJobBody(body, config));
  expect(created.json()).toMatchObject({ status: "success" });
  const id: string = created.json().data.project_id;
  return {
    id,
    organizationId,
    headers,
    actor: new OperatorActor(harness.admin),
    send: (method, operation = "", payload = undefined, more = {}) =>
      harness.app.inject({
        method,
        url: `/v1/project/${id}${operation === "" ? "" : `/${operation}`}`,
        headers: { ...headers, ...more },
        ...(payload === undefined ? {} : { payload }),
      }),
  };
}
