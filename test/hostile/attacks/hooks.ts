import { randomBytes } from "node:crypto";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";

/** A connection's id that nobody has. */
const inventedConnection = (): string => `g${randomBytes(10).toString("hex").slice(0, 19)}`;

export const hooks: Attack = {
  name: "hooks",
  about: "40 clients that send 100 kB to hooks of invented connections, with invented signatures",
  seconds: 8,
  expected: ["401", "403", "404", "429", "503"],
  prepare: async ({ url }) => {
    const body = JSON.stringify({ ref: "refs/heads/main", commits: ["c".repeat(100_000)] });
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 40,
            count: 20_000,
            next: () => ({
              method: "POST",
              path: `/v1/git/hooks/${inventedConnection()}`,
              headers: {
                "x-gitea-event": "push",
                "x-gitea-delivery": randomBytes(16).toString("hex"),
                "x-gitea-signature": randomBytes(32).toString("hex"),
              },
              body,
            }),
          },
          signal,
        ),
    };
  },
};
