import { httpProject, untilStatus } from "../../e2e/support/api.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

/** What each run writes, in bytes. */
const FLOOD = "16000000";

export const oneOffRuns: Attack = {
  name: "one-off-runs",
  about:
    "four clients that start one-off runs which flood their logs, read those logs, and try the runs of another organization",
  seconds: 20,
  expected: ["200", "202", "403", "404", "409", "429", "503"],
  async prepare({ url, organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const id = await own.create(httpProject("runs-floods", { exposure: "private" }));
    const foreign = await others.create(httpProject("runs-of-others", { exposure: "private" }));
    await untilStatus(own.call, id, "running");
    await untilStatus(others.call, foreign, "running");
    const started = await others.call<{ run: { id: string } }>("POST", `/v1/project/${foreign}/runs`, {
      command: ["/sample-http", "flood", "100"],
    });
    const theirs = started.body.data?.run.id ?? "";
    const runs: string[] = [];
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 4,
            count: 2_000,
            next: (index) => {
              const headers = { "x-api-key": attacker.api_key };
              const mine = `/v1/project/${id}/runs`;
              const last = runs.at(-1) ?? theirs;
              const choices = [
                { method: "POST", path: mine, headers, body: { command: ["/sample-http", "flood", FLOOD] } },
                { method: "GET", path: `${mine}/${last}/logs`, headers },
                { method: "GET", path: `/v1/project/${foreign}/runs/${theirs}/logs`, headers },
                { method: "GET", path: `/v1/project/${foreign}/runs/cost-summary`, headers },
                { method: "POST", path: `${mine}/${theirs}/cancel`, headers },
              ] as const;
              return choices[index % choices.length] ?? choices[0];
            },
            seen: ({ method }, status, body) => {
              if (method === "POST" && status === 202) {
                runs.push(JSON.parse(body).data.run.id);
              }
            },
          },
          signal,
        ),
      clean: async () => {
        await own.remove();
        await others.remove();
      },
    };
  },
};
