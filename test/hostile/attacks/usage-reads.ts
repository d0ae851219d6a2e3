import { httpProject } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

export const usageReads: Attack = {
  name: "usage-reads",
  about:
    "30 clients of two organizations that ask for what they and a project were charged, in every cycle and on pages far behind the last one",
  seconds: 8,
  expected: ["200", "400", "429", "503"],
  required: ["200"],
  async prepare({ url, organizations }) {
    const sides = await Promise.all(
      organizations.map(async (organization) => {
        const projects = projectsOf(organization);
        const id = await projects.create(httpProject("usage-reads"));
        return { projects, id, headers: { "x-api-key": organization.api_key } };
      }),
    );
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 30,
            count: 20_000,
            next: (index) => {
              const { id, headers } = sides[index % 2] as (typeof sides)[number];
              const month = String((index % 12) + 1).padStart(2, "0");
              const cycle = `cycle=20${20 + (index % 80)}-${month}`;
              const paths = [
                "/v1/organization/usage",
                `/v1/organization/usage?${cycle}&page=${2 ** (index % 31)}&limit=100`,
                `/v1/project/${id}/cost`,
                `/v1/project/${id}/cost?${cycle}`,
              ];
              return { method: "GET", path: paths[(index >> 1) % paths.length] as string, headers };
            },
          },
          signal,
        ),
      clean: async () => {
        await Promise.all(sides.map(({ projects }) => projects.remove()));
      },
    };
  },
};
