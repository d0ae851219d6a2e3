import type { Attack } from "../attack.ts";
import { closed, connections, open } from "../connections.ts";

export const slowHeaders: Attack = {
  name: "slow-headers",
  about: "500 connections whose request's head never ends, a header every second",
  seconds: 10,
  expected: ["400", "408", "429", "431", "503", closed, open],
  prepare: async ({ url }) => ({
    run: (signal) =>
      connections(
        {
          url,
          count: 500,
          perSecond: 500,
          first: (index) => [`GET /v1/project HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Client: ${index}\r\n`],
          drip: { everyMs: 1_000, bytes: `X-More: ${"a".repeat(64)}\r\n` },
        },
        signal,
      ),
  }),
};
