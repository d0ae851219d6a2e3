import { httpProject } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const members = ["internal_url", "host", "connection_string", "password"];

export const references: Attack = {
  name: "references",
  about:
    "four clients whose variables refer to another organization's project, by id and by name, and thousands of times in one value",
  seconds: 8,
  // None of them is ever accepted.
  expected: ["400", "429", "503"],
  async prepare({ url, organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const body = httpProject("referred-to-by-others", { exposure: "private" });
    const victim = await others.create(body);
    const id = await own.create(httpProject("refers-to-others", { exposure: "private" }));
    const values = [victim, body.name].flatMap((project) =>
      members.map((member) => `\${project:${project}.${member}}`),
    );
    const broken = ["${".concat("project:"), "$".repeat(20_000).concat("{project:a.host}")];
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 4,
            count: 2_000,
            next: (index) => {
              const value = [...values, ...broken][index % (values.length + broken.length)] ?? "";
              const often = index % 3 === 0 && value.length < 100 ? value.repeat(300) : value;
              // An even run of dollars is a text; one more makes it a reference.
              const odd = often.startsWith("$$") ? `$${often}` : often;
              return {
                method: "PATCH",
                path: `/v1/project/${id}/envs`,
                headers: { "x-api-key": attacker.api_key },
                body: { envs: [{ name: "STOLEN", value: odd }] },
              };
            },
          },
          signal,
        ),
      clean: async () => {
        await own.remove();
        await others.remove();
      },
    };
  },
};
