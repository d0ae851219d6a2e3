/**
 * `node test/bench/builds.ts [--rounds 5]`: on the stack of `hack/up.sh`, builds the Git server's sample repository as a new project does,
 * then again without a change, and reports how the time of each build is spent: until the first container runs, in the steps of its
 * pod, and until the version serves. BuildKit's own time in the same build is what a plain `buildctl build` takes; all
 * else is the platform's.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs, parseEnv } from "node:util";
import { root } from "../../hack/lib/paths.ts";
import { waitFor } from "../../hack/lib/wait.ts";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const stack = parseEnv(readFileSync(join(root, ".slipway/stack.env"), "utf8"));

/** Calls `/v1`, as the organization's owner where requested. @throws for another status than those of success */
async function call<T>(method: string, path: string, body?: object, asOwner = false): Promise<T> {
  const credential: Record<string, string> = asOwner
    ? {
        authorization: `Bearer ${stack.SLIPWAY_OWNER_TOKEN}`,
        "x-organization-id": String(stack.SLIPWAY_ORGANIZATION_ID),
      }
    : { "x-api-key": String(stack.SLIPWAY_API_KEY) };
  const response = await fetch(`${stack.SLIPWAY_URL}${path}`, {
    method,
    headers: { ...credential, ...(body ? { "content-type": "application/json" } : {}) },
    body: body && JSON.stringify(body),
  });
  const answer = (await response.json()) as { data: T };
  if (!response.ok) {
    throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  }
  return answer.data;
}

interface Line {
  readonly timestamp: string;
  readonly step: string;
  readonly message: string;
}

/** Seconds of one build, by part. */
async function timesOf(project: string, build: string): Promise<Record<string, number>> {
  const ended = await waitFor("the build's end", 300_000, async () => {
    const read = await call<{ status: string; created_at: string; finished_at: string | null }>(
      "GET",
      `/v1/project/${project}/builds/${build}`,
    );
    return read.finished_at === null ? undefined : read;
  });
  if (ended.status !== "success") {
    throw new Error(`build ${build} is ${ended.status}`);
  }
  const { logs } = await call<{ logs: Line[] }>(
    "GET",
    `/v1/project/${project}/builds/${build}/logs?limit=500`,
  );
  const at = (line: Line | undefined): number => Date.parse(line?.timestamp ?? "") / 1000;
  const first = (step: string) => at(logs.find((line) => line.step === step));
  const last = (step: string) => at(logs.findLast((line) => line.step === step));
  const created = Date.parse(ended.created_at) / 1000;
  const finished = Date.parse(ended.finished_at ?? "") / 1000;
  const times = {
    "until a container runs": first("fetch") - created,
    "fetch, plan": first("build") - first("fetch"),
    "BuildKit itself": last("build") - first("build"),
    push: last("push") - last("build"),
    "until it serves": finished - last("push"),
    all: finished - created,
  };
  return { ...times, "all but BuildKit": times.all - times["BuildKit itself"] };
}

const connection = await call<{ connection: { id: string } }>(
  "POST",
  "/v1/git/connections",
  {
    provider_id: "forgejo",
    instance_url: stack.SLIPWAY_GIT_URL,
    display_name: "Benchmark",
    repository_path: "slipway/sample-node",
    username: stack.SLIPWAY_GIT_USERNAME,
    token: stack.SLIPWAY_GIT_TOKEN,
  },
  true,
);
const connectionId = connection.connection.id;
const repository = await call<{ id: string }>(
  "POST",
  `/v1/git/connections/${connectionId}/repositories/resolve`,
  { path: "slipway/sample-node" },
  true,
);
const created = await call<{ project_id: string; build_id: string }>("POST", "/v1/project", {
  name: `bench-${Date.now().toString(36)}`,
  plan: "basic",
  payment_mode: "hourly",
  config: {
    type_project: "http",
    exposure: "public",
    port: 8080,
    instances: 1,
    source: { connection_id: connectionId, repository_id: repository.id, branch: "main", auto_deploy: false },
    build: { runtime: "node", version: "24" },
    storage: { persistent: false, capacity: 1 },
    envs: [],
    network_access: {
      ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }],
      ingress_black_list: [],
    },
  },
});
const { project_id: project } = created;
try {
  const rows: Record<string, Record<string, number>> = {};
  rows["first, empty cache"] = await timesOf(project, created.build_id);
  for (let round = 1; round <= Number(values.rounds); round += 1) {
    const { build_id } = await call<{ build_id: string }>("POST", `/v1/project/${project}/deploy`);
    rows[`again, ${round}`] = await timesOf(project, build_id);
  }
  console.log("seconds:");
  const rounded = Object.entries(rows).map(([name, times]) => [
    name,
    Object.fromEntries(
      Object.entries(times).map(([part, seconds]) => [part, Math.round(seconds * 100) / 100]),
    ),
  ]);
  console.table(Object.fromEntries(rounded));
} finally {
  await call("DELETE", `/v1/project/${project}`);
  await call("DELETE", `/v1/git/connections/${connectionId}`, undefined, true);
}
