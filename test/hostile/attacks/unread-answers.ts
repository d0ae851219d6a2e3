import { apiClient, createProject, deleteProjects, httpProject } from "../../e2e/support/api.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import type { Attack } from "../attack.ts";
import { closed, connections, open } from "../connections.ts";

/** Variables of the largest legal size: an answer of 1.6 MB. */
const envs = Array.from({ length: 50 }, (_, index) => ({
  name: `LARGE_${index}`,
  value: "v".repeat(30_000),
}));

export const unreadAnswers: Attack = {
  name: "unread-answers",
  about: "120 clients that ask 20 times for 1.5 MB on one connection and read nothing",
  seconds: 10,
  isShort: true,
  expected: [closed, open],
  prepare: async ({ url, organizations: [{ api_key }] }) => {
    const call = apiClient(api_key);
    // The namespace of a new organization may be a moment behind.
    const { project_id } = await eventually(() =>
      createProject(call, httpProject("unread-answers", { exposure: "private", instances: 1, envs })),
    );
    const ask = `GET /v1/project/${project_id}/envs HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: ${api_key}\r\n\r\n`;
    return {
      run: (signal) =>
        connections({ url, count: 120, perSecond: 120, reads: false, first: () => [ask.repeat(20)] }, signal),
      clean: () => deleteProjects(call, [project_id]),
    };
  },
};
