import { parseArgs } from "node:util";
import { prepareApiBench, waitForProjects } from "./api-process.ts";
import { type Target, takeTurns } from "./load.ts";
import { line } from "./report.ts";
import { createRunningProjects, residentMiB } from "./setup.ts";

/**
 * `node test/bench/lists.ts`: GET /v1/project with search, sort and page, over the projects of one organization or of many. Ends with
 * code 1 when the slowest hundredth of a query takes longer than the goal.
 */
const { values } = parseArgs({
  options: {
    projects: { type: "string", default: "10000" },
    organizations: { type: "string", default: "1" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "3" },
    connections: { type: "string", default: "4" },
  },
});
const GOAL_P99_MS = 10;
const QUERIES = [
  "",
  "?sort_by=created_at&sort_order=asc&limit=50",
  "?page=40&limit=50",
  "?status=running&type=http",
  "?search=bench-99",
  "?search=nothing-is-named-so&sort_by=created_at",
];

const projects = Number(values.projects);
const cleanups: (() => unknown)[] = [];

async function bench(): Promise<boolean> {
  const { etcd, key, start } = await prepareApiBench(cleanups);
  await createRunningProjects(etcd, 0, projects, Number(values.organizations));
  const api = await start();
  await waitForProjects(api, projects);
  const pid = api.process.pid as number;
  const before = residentMiB(pid);
  const targets = QUERIES.map((query): Target => {
    const url = `${api.url}/v1/project${query}`;
    return { name: query, url, headers: { "x-api-key": key }, pid, metricsUrl: api.metricsUrl };
  });
  const measured = await takeTurns(targets, Number(values.rounds), {
    seconds: Number(values.seconds),
    connections: Number(values.connections),
  });
  console.log(
    `\n${projects} projects, ${values.organizations} organizations; median of ${values.rounds} rounds of ${values.seconds} s, ${values.connections} connections`,
  );
  measured.forEach((one, index) => {
    line(QUERIES[index] || "no parameters", one);
  });
  console.log(
    `  memory of the API server: ${before.toFixed(0)} MiB, ${residentMiB(pid).toFixed(0)} after load`,
  );
  const worst = Math.max(...measured.map(({ p99 }) => p99));
  console.log(`  p99 of the slowest: ${worst} ms; goal ${GOAL_P99_MS}`);
  return worst <= GOAL_P99_MS;
}

try {
  if (!(await bench())) {
    process.exitCode = 1;
  }
} finally {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
}
