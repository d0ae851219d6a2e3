import { randomBytes } from "node:crypto";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";

/** As long as a real key and of its alphabet, so that only the ledger could know. */
const inventedLike = (key: string): string => {
  const at = key.lastIndexOf("_") + 1;
  const length = key.length - at;
  return key.slice(0, at) + randomBytes(length).toString("hex").slice(0, length);
};

export const inventedKeys: Attack = {
  name: "invented-keys",
  about: "50 clients with another invented key in every call",
  seconds: 8,
  isShort: true,
  expected: ["401", "429", "503"],
  prepare: async ({ url, organizations: [{ api_key }] }) => ({
    run: (signal) =>
      calls(
        {
          url,
          concurrency: 50,
          count: 50_000,
          next: () => ({
            method: "GET",
            path: "/v1/project",
            headers: { "x-api-key": inventedLike(api_key) },
          }),
        },
        signal,
      ),
  }),
};
