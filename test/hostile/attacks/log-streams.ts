import { httpProject, untilStatus } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { closed, connections } from "../connections.ts";
import { projectsOf } from "../projects.ts";

export const logStreams: Attack = {
  name: "log-streams",
  about: "200 log streams of two organizations that are never closed",
  seconds: 10,
  expected: ["200", "429", "503", closed],
  async prepare({ url, organizations }) {
    const sides = await Promise.all(
      organizations.map(async (organization) => {
        const projects = projectsOf(organization);
        const id = await projects.create(httpProject("log-streams"));
        await untilStatus(projects.call, id, "running");
        return { projects, id, key: organization.api_key };
      }),
    );
    return {
      run: (signal) =>
        connections(
          {
            url,
            count: 200,
            perSecond: 100,
            first: (index) => {
              const { id, key } = sides[index % sides.length] ?? { id: "", key: "" };
              return [
                `GET /v1/project/${id}/logs?follow=true HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: ${key}\r\n\r\n`,
              ];
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
