import { httpProject } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

/** Different in every call, so that each is a Secret of its own. */
const envs = (seed: number) =>
  Array.from({ length: 28 }, (_, index) => ({
    name: `LARGE_${index}`,
    value: `${seed}:`.padEnd(30_000, "v"),
  }));

export const variables: Attack = {
  name: "variables",
  about: "four clients that replace variables of 0.8 MB in a loop",
  seconds: 12,
  expected: ["200", "400", "403", "409", "413", "429", "503"],
  async prepare({ url, organizations: [organization] }) {
    const projects = projectsOf(organization);
    const id = await projects.create(httpProject("variables-in-a-loop", { exposure: "private" }));
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 4,
            count: 200,
            next: (index) => ({
              method: "PATCH",
              path: `/v1/project/${id}/envs`,
              headers: { "x-api-key": organization.api_key },
              body: { envs: envs(index) },
            }),
          },
          signal,
        ),
      clean: projects.remove,
    };
  },
};
