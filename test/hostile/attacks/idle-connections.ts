import type { Attack } from "../attack.ts";
import { closed, connections, open } from "../connections.ts";

export const idleConnections: Attack = {
  name: "idle-connections",
  about: "2,000 connections that were answered once and stay",
  seconds: 10,
  expected: ["200", "429", "503", closed, open],
  prepare: async ({ url }) => ({
    run: (signal) =>
      connections(
        {
          url,
          count: 2_000,
          perSecond: 500,
          first: () => ["GET /v1/project/plans HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"],
        },
        signal,
      ),
  }),
};
