import { admin } from "../../e2e/support/organization.ts";
import type { Attack } from "../attack.ts";
import { type Call, calls } from "../calls.ts";

const project = "/v1/project/p0000000000000000000";
const tried: readonly Pick<Call, "method" | "path" | "body">[] = [
  { method: "POST", path: "/v1/project", body: { name: "x".repeat(900_000) } },
  { method: "GET", path: project },
  { method: "PATCH", path: `${project}/envs`, body: { envs: [{ name: "A", value: "b".repeat(32_000) }] } },
  { method: "DELETE", path: project },
  { method: "POST", path: `${project}/deploy`, body: {} },
  { method: "POST", path: "/v1/git/connections", body: { display_name: "d".repeat(10_000) } },
];

export const keysWithoutGrants: Attack = {
  name: "keys-without-grants",
  about: "30 clients with a valid key that may do nothing, on every kind of route, some with large bodies",
  seconds: 8,
  expected: ["403", "404", "429", "503"],
  prepare: async ({ url, organizations: [{ organization_id }] }) => {
    const { api_key } = await admin<{ api_key: string }>(
      "api-key",
      "create",
      "--organization",
      organization_id,
      "--grant",
      "project.billing.read on project:p0000000000000000001",
    );
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 30,
            count: 30_000,
            next: (index) => {
              const call = tried[index % tried.length] ?? { method: "GET", path: project };
              return { ...call, headers: { "x-api-key": api_key } };
            },
          },
          signal,
        ),
    };
  },
};
