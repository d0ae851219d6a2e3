import type { Attack } from "../attack.ts";
import { type Call, calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const BUDGET = "/v1/organization/budget";
/** As many as one may have. */
const notices = Array.from({ length: 10 }, (_, index) => index + 1);

/** One of five calls in turn. A hard cap is never reached: other attacks of these organizations are to go on. */
function callOf(index: number, turn: number): Omit<Call, "headers"> {
  if (turn === 0) {
    return { method: "GET", path: BUDGET };
  }
  if (turn === 1) {
    return { method: "DELETE", path: BUDGET };
  }
  const isCap = turn === 2;
  const amount = isCap ? `${10_000_000_000 + index}` : `0.${index + 1}`;
  return { method: "PUT", path: BUDGET, body: { amount, notices, hard_cap: isCap } };
}

export const budgets: Attack = {
  name: "budgets",
  about:
    "30 clients of two organizations that set, read and remove their budgets, each time to another amount, with as many notices as may be",
  seconds: 8,
  expected: ["200", "404 BUDGET_NOT_FOUND", "429", "503"],
  required: ["200"],
  async prepare({ url, organizations }) {
    const sides = organizations.map((organization) => ({
      headers: { "x-api-key": organization.api_key },
      projects: projectsOf(organization),
    }));
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 30,
            count: 20_000,
            next: (index) => {
              const { headers } = sides[index % sides.length] as (typeof sides)[number];
              return { ...callOf(index, Math.floor(index / sides.length) % 5), headers };
            },
          },
          signal,
        ),
      clean: async () => {
        await Promise.all(sides.map(({ projects }) => projects.call("DELETE", BUDGET)));
      },
    };
  },
};
