import { httpProject } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { closed, connections, open } from "../connections.ts";
import { projectsOf } from "../projects.ts";

/** Variables near the largest legal size, more than a single answer should cost the server. */
const envs = Array.from({ length: 28 }, (_, index) => ({
  name: `LARGE_${index}`,
  value: "v".repeat(30_000),
}));

export const unreadAnswers: Attack = {
  name: "unread-answers",
  about: "120 clients that ask 20 times for 0.8 MB on one connection and read nothing",
  seconds: 10,
  isShort: true,
  expected: [closed, open],
  async prepare({ url, organizations: [organization] }) {
    const projects = projectsOf(organization);
    const id = await projects.create(httpProject("unread-answers", { exposure: "private", envs }));
    const ask = `GET /v1/project/${id}/envs HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: ${organization.api_key}\r\n\r\n`;
    return {
      run: (signal) =>
        connections({ url, count: 120, perSecond: 120, reads: false, first: () => [ask.repeat(20)] }, signal),
      clean: projects.remove,
    };
  },
};
