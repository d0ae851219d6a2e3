import { httpProject, uniqueName } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const PROJECTS = 50;
const DOMAINS = 20;

export const domains: Attack = {
  name: "domains",
  about: "50 projects with 20 custom domains each, none of which is proved",
  seconds: 40,
  expected: ["201", "403", "409", "429", "503"],
  async prepare({ url, organizations: [, organization] }) {
    const projects = projectsOf(organization);
    const zone = `${uniqueName("domains")}.example.com`;
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 5,
            count: PROJECTS,
            next: (index) => ({
              method: "POST",
              path: "/v1/project",
              headers: { "x-api-key": organization.api_key },
              body: httpProject(uniqueName("domains"), {
                custom_domains: Array.from({ length: DOMAINS }, (_, one) => `d${index}-${one}.${zone}`),
              }),
            }),
            seen: (_, status, body) => {
              const id = /"project_id":"([a-z0-9]+)"/.exec(body)?.[1];
              if (status === 201 && id !== undefined) {
                projects.add(id);
              }
            },
          },
          signal,
        ),
      clean: projects.remove,
    };
  },
};
