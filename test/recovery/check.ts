/** What of a population is there after the platform was restored. */
import { request } from "undici";
import type { WriteSession } from "../e2e/support/acknowledged.ts";
import { apiClient, readProject } from "../e2e/support/api.ts";
import { eventually } from "../e2e/support/eventually.ts";
import { Job } from "../e2e/support/jobs.ts";
import { stack } from "../e2e/support/stack.ts";
import { engineOf, type Population, ROWS } from "./population.ts";
import type { Restored } from "./report.ts";

/** Charges and finished runs as the API reports them, to be compared before and after. */
export async function history({ organizations: [first], job }: Population) {
  const one = new Job(apiClient(first.api_key), job);
  const runs = (await one.runs()).filter(({ status }) => status === "succeeded");
  return { runs: runs.map(({ id }) => id), costs: (await one.costs())?.total_amount ?? 0 };
}
export type History = Awaited<ReturnType<typeof history>>;

/** @param began `performance.now()` when the restore began */
export async function check(people: Population, before: History, began: number): Promise<Restored[]> {
  const lines: Restored[] = [];
  const [first, second] = people.organizations;
  const [call, other] = [apiClient(first.api_key), apiClient(second.api_key)];
  const add = async (what: string, expected: number, count: () => Promise<number>) => {
    const after = await eventually(async () => {
      const found = await count();
      if (found < expected) {
        throw new Error(`${found} of ${expected}`);
      }
      return found;
    }).catch((error: Error) => Number.parseInt(error.message, 10) || 0);
    lines.push({ what, before: expected, after, seconds: (performance.now() - began) / 1_000 });
  };
  const ids = [
    ...people.applications.slice(0, 1).map(({ id }) => id),
    ...people.paused,
    people.job,
    ...people.databases.map(({ project }) => project.id),
    people.emptyDatabase,
  ];
  await add("projects", ids.length + 1, async () => {
    const read = await Promise.all(ids.map((id) => call("GET", `/v1/project/${id}`)));
    const theirs = await other("GET", `/v1/project/${people.applications[1]?.id}`);
    return [...read, theirs].filter(({ status }) => status === 200).length;
  });
  await add("keys and tokens", 4, async () => {
    const token = { authorization: `Bearer ${first.owner_token}` };
    const narrow = apiClient(people.narrowKey);
    const answers = await Promise.all([
      call("GET", "/v1/project"),
      other("GET", "/v1/project"),
      fetch(`${stack.url}/v1/project`, { headers: { ...token, "x-organization-id": first.organization_id } }),
      narrow("GET", `/v1/project/${people.applications[0]?.id}`),
    ]);
    return answers.filter(({ status }) => status === 200).length;
  });
  await add("keys that may nothing else", 1, async () => {
    const { status } = await apiClient(people.narrowKey)("GET", `/v1/project/${people.job}`);
    return status === 403 ? 1 : 0;
  });
  await add("paused applications", people.paused.length, async () => {
    const read = await Promise.all(people.paused.map((id) => readProject(call, id)));
    return read.filter(({ status }) => status === "stopped").length;
  });
  await add("applications that answer", people.applications.length, async () => {
    const answers = await Promise.all(people.applications.map(({ domain }) => answerOf(domain)));
    return answers.filter((code) => code === 200).length;
  });
  await add("custom domains that answer", 1, async () => ((await answerOf(people.hostname)) === 200 ? 1 : 0));
  for (const { engine, project } of people.databases) {
    await add(`rows of ${engine}`, ROWS, async () => (await engineOf(engine).rows(project)).size);
    await add(`${engine} takes writes`, 1, async () => {
      const session: WriteSession = await engineOf(engine).open(project);
      await session.insert(ROWS + 1);
      await session.close();
      return 1;
    });
  }
  await add("runs of the job, and their charges", before.runs.length, async () => {
    const now = await history(people);
    const kept = before.runs.filter((id) => now.runs.includes(id)).length;
    return now.costs >= before.costs ? kept : 0;
  });
  await add(
    "a run after the restore",
    before.runs.length + 1,
    async () => (await history(people)).runs.length,
  );
  return lines;
}

async function answerOf(host: string): Promise<number> {
  const { statusCode, body } = await request(stack.ingressUrl, { headers: { host } });
  await body.dump();
  return statusCode;
}
