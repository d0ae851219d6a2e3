import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, parseEnv } from "node:util";
import { labels, organizationNamespace } from "@slipway/crds";
import { run } from "../../hack/lib/exec.ts";
import { root } from "../../hack/lib/paths.ts";
import { waitFor } from "../../hack/lib/wait.ts";

/**
 * `node test/bench/databases.ts`: on the stack of `hack/up.sh`, creates one database of every engine through `/v1`, each with as
 * many instances as it takes here, all concurrently or (`--in-turn`) one after the other; reports the time from the request to `running`
 * with all instances, and the memory of their pods a minute later as metrics.k8s.io has it. Deletes them.
 */
const { values } = parseArgs({
  options: {
    "in-turn": { type: "boolean", default: false },
    "wait-seconds": { type: "string", default: "60" },
  },
});
const waitSeconds = Number(values["wait-seconds"]);
const environment = parseEnv(readFileSync(join(root, ".slipway/stack.env"), "utf8"));
const { SLIPWAY_URL: url, SLIPWAY_API_KEY: key, SLIPWAY_ORGANIZATION_ID: organization } = environment;
const { KUBECONFIG: kubeconfig } = environment;
if (!url || !key || !organization || !kubeconfig) {
  throw new Error("the stack file is incomplete: run hack/up.sh");
}
const namespace = organizationNamespace(organization);

const disk = { storage: { persistent: true, capacity: 1 } };
const closed = { network_access: { ingress_white_list: [{ cidr: "127.0.0.1/32", description: "nobody" }] } };
const engines = [
  { type: "postgresql", plan: "db-basic", version: "17", instances: 3, ...disk },
  { type: "mariadb", plan: "db-basic", version: "11", instances: 3, ...disk },
  { type: "clickhouse", plan: "analytics-basic", version: "26.8.6.5", instances: 1, ...disk },
  { type: "valkey", plan: "db-premium_plus", version: "9.1.1", profile: "key_value", instances: 3, ...disk },
];

interface Answer {
  message?: string;
  data?: { project_id?: string; status?: string };
}

async function call(method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      "x-api-key": String(key),
      "idempotency-key": randomUUID(),
      ...(body ? { "content-type": "application/json" } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const answer = (await response.json()) as Answer;
  if (!response.ok) {
    throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  }
  return answer;
}

const kubectl = (...args: string[]): Promise<string> =>
  run("kubectl", ["--kubeconfig", String(kubeconfig), "--namespace", namespace, ...args]);

interface ProjectStatus {
  phase?: string;
  readyInstances?: number;
}

/** Seconds from the request until it runs with all instances. */
async function create({
  type,
  plan,
  instances,
  ...config
}: (typeof engines)[number]): Promise<[string, number]> {
  const start = performance.now();
  const { data } = await call("POST", "/v1/project", {
    name: `bench-${type}-${randomBytes(3).toString("hex")}`,
    plan,
    payment_mode: "hourly",
    config: {
      type_project: type,
      ...config,
      ...(type === "valkey"
        ? closed // and as many instances as the plan has
        : { instances, envs: [], network_access: { ...closed.network_access, ingress_black_list: [] } }),
    },
  });
  const id = String(data?.project_id);
  made.push(id);
  await waitFor(`${type} with ${instances} instances`, 600_000, async () => {
    const status = JSON.parse(
      await kubectl("get", "project", id, "-o", "jsonpath={.status}"),
    ) as ProjectStatus;
    return status.phase === "running" && status.readyInstances === instances;
  });
  return [id, (performance.now() - start) / 1000];
}

/** MiB of all pods of a project, by metrics.k8s.io. */
async function memory(id: string): Promise<number[]> {
  const lines = (await kubectl("top", "pod", "--no-headers", "-l", `${labels.project}=${id}`))
    .trim()
    .split("\n");
  return lines.map((line) => Number.parseInt(line.trim().split(/\s+/)[2] ?? "", 10));
}

const made: string[] = [];
try {
  const created: [string, number][] = [];
  if (values["in-turn"]) {
    for (const engine of engines) {
      created.push(await create(engine));
    }
  } else {
    const tries = await Promise.allSettled(engines.map(create));
    for (const one of tries) {
      if (one.status === "rejected") {
        throw one.reason;
      }
      created.push(one.value);
    }
  }
  console.log(`all serve; their memory is read in ${waitSeconds} s`);
  await sleep(waitSeconds * 1000);
  let total = 0;
  for (const [index, [id, seconds]] of created.entries()) {
    const engine = engines[index];
    const pods = await memory(id);
    const sum = pods.reduce((all, one) => all + one, 0);
    total += sum;
    console.log(
      `${engine?.type} ${engine?.version}, ${engine?.instances} instances: ready after ${seconds.toFixed(1)} s, ${sum} MiB (${pods.join(" + ")})`,
    );
  }
  console.log(
    `together ${total} MiB${values["in-turn"] ? "" : `, all ready after ${Math.max(...created.map(([, seconds]) => seconds)).toFixed(1)} s`}`,
  );
} finally {
  await Promise.all(made.map((id) => call("DELETE", `/v1/project/${id}`).catch(console.error)));
}
