import { httpProject } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const GROUPS = "/v1/organization/variable-groups";

/** Names that no group of the attacker's has: of other namespaces, of the platform's own Secrets, and what is no name. */
const invented = ["vdoesnotexist", "slipway-token-key", "../groups", "default/mail", "v".repeat(200), ""];

export const variableGroups: Attack = {
  name: "variable-groups",
  about:
    "four clients who read, change, delete and attach another organization's variable group, and write groups that are too large or refer to projects",
  seconds: 8,
  // None of them is ever accepted.
  expected: ["400", "404", "413", "429", "503"],
  async prepare({ url, organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const create = async ({ call }: typeof own) => {
      const body = { name: "Shared", variables: [{ name: "KEY", value: "value" }] };
      const { body: answer } = await call<{ id: string }>("POST", GROUPS, body);
      return answer.data?.id ?? "";
    };
    const id = await own.create(httpProject("attaches-groups", { exposure: "private" }));
    const [mine, victim] = [await create(own), await create(others)];
    const values = [
      ["A", "B", "C"].map((name) => ({ name, value: "x".repeat(32_000) })),
      Array.from({ length: 60 }, (_, index) => ({ name: `KEY${index}`, value: "x" })),
      [{ name: "KEY", value: "${".concat("project:", victim, ".password}") }],
    ];
    const headers = { "x-api-key": attacker.api_key };
    const about = (group: string, index: number) => ({
      method: (["GET", "PATCH", "DELETE"] as const)[index % 3] ?? "GET",
      path: `${GROUPS}/${encodeURIComponent(group)}`,
      headers,
      ...(index % 3 === 1 ? { body: { variables: [{ name: "STOLEN", value: "yes" }] } } : {}),
    });
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 4,
            count: 2_000,
            next: (index) => {
              const group = [victim, ...invented][index % (invented.length + 1)] ?? victim;
              if (index % 4 === 0) {
                return about(group || victim, index >> 2);
              }
              if (index % 4 === 1) {
                const variables = values[(index >> 2) % values.length];
                return { method: "PATCH", path: `${GROUPS}/${mine}`, headers, body: { variables } };
              }
              const ids = index % 4 === 2 ? [group] : Array.from({ length: 500 }, (_, at) => `v${at}`);
              const path = `/v1/project/${id}/variable-groups`;
              return { method: "PATCH", path, headers, body: { variable_group_ids: ids } };
            },
          },
          signal,
        ),
      clean: async () => {
        await own.remove();
        await others.remove();
        await own.call("DELETE", `${GROUPS}/${mine}`);
        await others.call("DELETE", `${GROUPS}/${victim}`);
      },
    };
  },
};
