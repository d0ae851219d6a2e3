import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";

export const usageReads: Attack = {
  name: "usage-reads",
  about:
    "30 clients of two organizations that ask for what was charged, in every cycle and on pages far behind the last one",
  seconds: 8,
  expected: ["200", "400", "429", "503"],
  required: ["200"],
  prepare: async ({ url, organizations }) => ({
    run: (signal) =>
      calls(
        {
          url,
          concurrency: 30,
          count: 20_000,
          next: (index) => {
            const month = String((index % 12) + 1).padStart(2, "0");
            const query = `cycle=20${20 + (index % 80)}-${month}&page=${2 ** (index % 31)}&limit=100`;
            const { api_key } = organizations[index % 2] as (typeof organizations)[number];
            const path = `/v1/organization/usage${index % 3 === 0 ? "" : `?${query}`}`;
            return { method: "GET", path, headers: { "x-api-key": api_key } };
          },
        },
        signal,
      ),
  }),
};
