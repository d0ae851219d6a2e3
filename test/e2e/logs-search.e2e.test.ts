import { afterAll, beforeAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { createDatabase, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { acquireExclusive } from "./support/exclusive.ts";
import { untilServing } from "./support/ingress.ts";
import { allLines, searchLogs, writeLines } from "./support/logs.ts";
import { collectorNamespace, collectorPod } from "./support/network-analytics.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf, stack } from "./support/stack.ts";

/** Logs that stay: from real containers over the node's files and the collector to `/v1`. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
let release: (() => void) | undefined;
beforeAll(async () => {
  release = await acquireExclusive("collector");
}, 900_000);
afterAll(async () => {
  release?.();
  await deleteProjects(call, made);
});

const timeout = 600_000;
/** From the writing of a line to its finding, on a machine that is busy. */
const MAX_DELAY_MS = 20_000;

/** An application that writes what it is asked to. */
async function writer(prefix: string, client = call) {
  const envs = [{ name: "SAMPLE_FAULTS", value: "1" }];
  const { project_id: id, domain } = await createProject(client, httpProject(uniqueName(prefix), { envs }));
  await untilStatus(client, id, "running");
  await untilServing(domain);
  return { id, domain };
}

/** Deletes the collector of a node. The next one continues where it was. */
const replaceCollector = (node: string) =>
  eventually(async () => {
    const name = await collectorPod(node);
    await cluster.core.deleteNamespacedPod({ namespace: collectorNamespace, name, gracePeriodSeconds: 1 });
  });

const instancesOf = async (id: string) => {
  const labelSelector = `slipway.dev/project=${id}`;
  const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
  return items.map(({ metadata, spec }) => ({ name: metadata?.name ?? "", node: spec?.nodeName ?? "" }));
};

// Shows: docs/logs.md#over-v1: no line is lost and none is kept twice
// Shows: docs/logs.md#over-v1: what an instance wrote is found after it is gone
test(
  "each line of an instance is found once over killed collectors, also after the instance is gone",
  async () => {
    const { id, domain } = await writer("logs");
    made.push(id);
    const [{ name: instance, node } = { name: "", node: "" }] = await instancesOf(id);
    // Within the rate of a project, so that none is left out.
    const [rounds, lines] = [20, 500];
    for (let round = 1; round <= rounds; round += 1) {
      await writeLines(domain, `${round % 2 === 0 ? "ERROR" : "INFO"}: round ${round} line`, lines);
      if (round % 8 === 0) {
        await replaceCollector(node);
      }
    }
    const query = { q: "round", order: "oldest" };
    await eventually(async () => {
      const [last] = (await searchLogs(call, id, { q: `round ${rounds} line ${lines}` })).data;
      expect(last?.message).toBe(`ERROR: round ${rounds} line ${lines}`);
    });
    const found = await allLines(call, id, query);
    const want = Array.from({ length: rounds }, (_, round) =>
      Array.from(
        { length: lines },
        (_, line) => `${round % 2 === 0 ? "INFO" : "ERROR"}: round ${round + 1} line ${line + 1}`,
      ),
    ).flat();
    expect(found.map(({ message }) => message)).toEqual(want);
    expect(new Set(found.map(({ instance, container }) => `${instance}/${container}`))).toEqual(
      new Set([`${instance}/app`]),
    );
    expect((await searchLogs(call, id, {})).omitted).toEqual({ lines: 0, bytes: 0, files: 0 });
    expect(await allLines(call, id, { ...query, level: "error" })).toHaveLength((rounds / 2) * lines);
    expect(await allLines(call, id, { ...query, level: "fatal" })).toEqual([]);

    await call("POST", `/v1/project/${id}/pause`);
    await eventually(async () => expect(await instancesOf(id)).toEqual([]));
    expect(await allLines(call, id, { ...query, instance })).toHaveLength(rounds * lines);
  },
  timeout,
);

// Shows: docs/logs.md#over-v1: what is over the bounds is counted, per instance, together with what was kept
// Shows: docs/logs.md#over-v1: a long log delays no other
test(
  "an instance that floods its log delays another organization's by less than 20 s, and what it lacks is stated",
  async () => {
    const organization = await createOrganization(uniqueName("floods"));
    const client = apiClient(organization.api_key);
    const loud = await eventually(() => writer("loud", client));
    const quiet = await writer("quiet");
    made.push(quiet.id);
    try {
      const total = 500_000;
      let isOver = false;
      const flood = (async () => {
        for (let written = 0; written < total; written += 100_000) {
          await writeLines(loud.domain, "flood", 100_000);
        }
      })().finally(() => {
        isOver = true;
      });
      const delays: number[] = [];
      for (let number = 1; !isOver || number <= 5; number += 1) {
        const began = performance.now();
        await writeLines(quiet.domain, `quiet ${number}`, 1);
        await eventually(
          async () => {
            const { data } = await searchLogs(call, quiet.id, { q: `quiet ${number} 1` });
            expect(data.map(({ message }) => message)).toEqual([`quiet ${number} 1`]);
          },
          { within: 60_000, every: 250 },
        );
        delays.push(Math.round(performance.now() - began));
      }
      await flood;
      // Far more than a turn of each log takes, and far less than the flood would take by itself to be read, sent and stored: that would
      // delay every line, where a disk that stalls delays one.
      const median = delays.toSorted((a, b) => a - b)[Math.floor(delays.length / 2)];
      expect(median, `${delays.join(", ")} ms`).toBeLessThan(MAX_DELAY_MS);
      console.log(`beside a flood of ${total} lines a line is found after ${delays.join(", ")} ms`);
      // What the kubelet removed before it was read is known as files alone.
      await eventually(async () => {
        const { omitted } = await searchLogs(client, loud.id, {});
        expect(omitted.lines + omitted.files).toBeGreaterThan(0);
      });
      expect((await searchLogs(call, quiet.id, {})).omitted).toEqual({ lines: 0, bytes: 0, files: 0 });
      // The other organization's key does not find the project at all.
      expect((await client("GET", `/v1/project/${quiet.id}/logs/search`)).status).toBe(404);
    } finally {
      await deleteProjects(client, [loud.id]);
    }
  },
  timeout,
);

test(
  "a database's log is found by level, without passwords",
  async () => {
    const database = await createDatabase(
      call,
      databaseProject("db-basic", { type_project: "postgresql", version: "17" }),
    );
    made.push(database.id);
    await untilReady(database);
    // As PostgreSQL says it: "LOG:  database system is ready to accept connections".
    const said = { q: "database system is ready" };
    const found = await eventually(async () => {
      const lines = await allLines(call, database.id, { ...said, level: "info" });
      expect(lines.length).toBeGreaterThan(0);
      return lines;
    });
    expect(new Set(found.map(({ container }) => container))).toEqual(new Set(["database"]));
    expect(
      await allLines(call, database.id, { ...said, level: "trace,debug,warn,error,fatal,none" }),
    ).toEqual([]);
    const all = await allLines(call, database.id, {});
    expect(all.length).toBeGreaterThan(found.length);
    expect(JSON.stringify(all)).not.toContain(database.connection.password);
  },
  timeout,
);
