import type { Attack } from "../attack.ts";
import { type Call, calls } from "../calls.ts";

/** Texts on which regular expressions that backtrack take a time that grows with the square or worse of their length. */
const long = [
  "a".repeat(4_000),
  "/".repeat(4_000),
  "%2e%2e%2f".repeat(400),
  "1.".repeat(2_000),
  `${"0".repeat(2_000)}!`,
  " ".repeat(1_000),
  "a@".repeat(2_000),
  `${"-".repeat(2_000)}a`,
];
const id = "p0000000000000000000";
const tried = (text: string): readonly Omit<Call, "headers">[] => [
  { method: "GET", path: `/v1/${encodeURI(text)}` },
  { method: "GET", path: `/v1/project/${encodeURIComponent(text)}` },
  { method: "GET", path: `/v1/project?search=${encodeURIComponent(text)}` },
  { method: "GET", path: `/v1/project/${id}/builds/a%00b` },
  { method: "DELETE", path: "/v1/project/a%00b" },
  {
    method: "PATCH",
    path: `/v1/project/${id}/github/deploy-settings`,
    body: { version_deploy: { enabled: true, tag_pattern: "*a".repeat(127) } },
  },
  {
    method: "POST",
    path: "/v1/project",
    body: {
      name: text,
      plan: text,
      payment_mode: text,
      config: { type_project: "job", job: { cron: text } },
    },
  },
  {
    method: "POST",
    path: "/v1/project",
    body: {
      name: "patterns",
      plan: "basic",
      config: Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`k${i}`, 1])),
    },
  },
];

export const patterns: Attack = {
  name: "patterns",
  about:
    "ten clients with bait for regular expressions in paths, queries, names, schedules and patterns of tags",
  seconds: 8,
  expected: ["200", "400", "403", "404", "413", "414", "429", "431", "503"],
  prepare: async ({ url, organizations: [{ api_key }] }) => {
    const all = long.flatMap(tried);
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 10,
            count: 5_000,
            next: (index) => ({
              ...(all[index % all.length] ?? { method: "GET", path: "/v1/project" }),
              headers: { "x-api-key": api_key },
            }),
          },
          signal,
        ),
    };
  },
};
