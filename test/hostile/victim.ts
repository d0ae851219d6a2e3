/** An organization that goes about its work: an application, a job every minute, a PostgreSQL, a build. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Dispatcher, Pool } from "undici";
import { lostRows, type WriteSession } from "../e2e/support/acknowledged.ts";
import { apiClient, createProject, deleteProjects, httpProject, untilStatus } from "../e2e/support/api.ts";
import { createGitProject, untilBuilt, untilEnded } from "../e2e/support/builds.ts";
import { createDatabase, databaseProject, untilReady } from "../e2e/support/databases.ts";
import { eventually } from "../e2e/support/eventually.ts";
import { connectRepository, createRepository } from "../e2e/support/git.ts";
import {
  deleteJobs,
  EVERY_MINUTE,
  Job,
  type JobRun,
  MINUTE_MS,
  type MissedRuns,
} from "../e2e/support/jobs.ts";
import type { Organization } from "../e2e/support/organization.ts";
import { connectPostgresql, createRows, readRows, rowsOver } from "../e2e/support/postgresql.ts";
import { type Route, routeOfItsOwn } from "./client-address.ts";
import { type Load, openLoop } from "./samples.ts";

/** Longer is no answer. */
const TIMEOUT_MS = 10_000;

/** Requests a second. The API's own limits bound them where they are not scaled up. */
function rates(rateLimitScale: number) {
  const isLimited = rateLimitScale < 10;
  return {
    app: 40,
    row: 10,
    read: isLimited ? 1 : 10,
    search: isLimited ? 0.2 : 0.5,
    write: isLimited ? 0.1 : 2,
  };
}

export interface Victim {
  readonly organization: Organization;
  /** Id of the job that runs every minute. */
  readonly job: string;
  /** Every request so far. */
  readonly load: Load;
  /** Builds its application from Git once more; absent where there are no builds. @returns seconds that it took @throws when it did not succeed */
  readonly build?: () => Promise<number>;
  /** Ends the work and counts what it came to. */
  finish(): Promise<Outcome>;
  /** Removes all that it made. */
  remove(): Promise<void>;
}

/** What the victim can only know at the end. */
export interface Outcome {
  /** Minutes of the work in which the job was due and no run of it is recorded, or it failed. */
  readonly missedRuns: readonly string[];
  /** Runs that were due. */
  readonly dueRuns: number;
  readonly acknowledgedRows: number;
  readonly lostRows: number;
}

/** Makes the victim's projects, waits until all of them work, and begins. @param builds whether it builds from Git, too */
export async function startVictim(
  organization: Organization,
  { rateLimitScale, builds }: { rateLimitScale: number; builds: boolean },
): Promise<Victim> {
  const call = apiClient(organization.api_key);
  // The namespace of a new organization may be a moment behind.
  const app = await eventually(() => createProject(call, httpProject("victim-app")));
  const [job, database, source] = await Promise.all([
    Job.create(call, { name: "victim-job", cron: EVERY_MINUTE, script: "echo done" }),
    createDatabase(
      call,
      databaseProject("db-basic", { type_project: "postgresql", version: "17" }),
      organization.organization_id,
    ),
    builds ? sourceOf(organization) : undefined,
  ]);
  await untilStatus(call, app.project_id, "running");
  await untilReady(database);
  const client = await eventually(() => connectPostgresql(database));
  await createRows(client);
  await client.end();

  const stop = new AbortController();
  const load: Load = { samples: [], pending: new Set() };
  const acknowledged = new Set<number>();
  const route = await routeOfItsOwn();
  const begun = Date.now();
  const rows = rowWriter(async () => rowsOver(await connectPostgresql(database), "victim"), acknowledged);
  const http = requests(route, organization, app);
  // A platform may collect none, or be of a release that has no search.
  const { status, body } = await call("GET", `/v1/project/${app.project_id}/logs/search`);
  const keepsLogs = status !== 404 && body.code !== "ANALYTICS_NOT_CONFIGURED";
  const rate = rates(rateLimitScale);
  const work = Promise.all([
    openLoop("app", rate.app, http.app, load, stop.signal),
    openLoop("read", rate.read, http.read, load, stop.signal),
    keepsLogs && openLoop("search", rate.search, http.search, load, stop.signal),
    openLoop("write", rate.write, http.write, load, stop.signal),
    openLoop("row", rate.row, rows.insert, load, stop.signal),
  ]);

  return {
    organization,
    job: job.id,
    load,
    ...(source && { build: source.build }),
    async finish() {
      stop.abort();
      await work;
      await Promise.all([rows.close(), http.close()]);
      const found = await eventually(async () => {
        const reader = await connectPostgresql(database);
        return readRows(reader).finally(() => reader.end());
      });
      const lost = lostRows(
        [...acknowledged].map((id) => ({ id, sentAt: 0, at: 0, by: "", term: 0 })),
        found,
      );
      const { due, missed } = await missedRuns(job, begun, Date.now());
      return {
        missedRuns: missed,
        dueRuns: due,
        acknowledgedRows: acknowledged.size,
        lostRows: lost.length,
      };
    },
    async remove() {
      stop.abort();
      await route.remove();
      await deleteJobs([job]);
      await deleteProjects(call, [app.project_id, database.id]);
      await source?.remove();
    },
  };
}

/** A repository of the victim's and the project that is built from it, once already. */
async function sourceOf({ organization_id, api_key, owner_token }: Organization) {
  const call = apiClient(api_key);
  const repository = await createRepository(`victim-${organization_id}`, {
    "package.json": JSON.stringify({
      name: "victim",
      version: "1.0.0",
      scripts: { start: "node server.js" },
    }),
    "package-lock.json": JSON.stringify({
      name: "victim",
      version: "1.0.0",
      lockfileVersion: 3,
      packages: {},
    }),
    "server.js": `require("http").createServer((_, answer) => answer.end("ok")).listen(process.env.PORT);`,
  });
  const connected = await connectRepository(repository, {
    organization: organization_id,
    token: owner_token,
  });
  const { project_id: id, build_id } = await createGitProject(call, "victim-build", connected, {
    source: { auto_deploy: false },
    config: { exposure: "private" },
  });
  await untilBuilt(call, id, build_id);
  return {
    async build(): Promise<number> {
      const start = performance.now();
      const deploy = await call<{ build_id: string }>("POST", `/v1/project/${id}/deploy`, {});
      if (deploy.status !== 202) {
        throw new Error(`a deploy was answered ${deploy.status}`);
      }
      const ended = await untilEnded(call, id, deploy.body.data?.build_id ?? "");
      if (ended.status !== "success") {
        throw new Error(`the build is ${ended.status}: ${ended.error_message}`);
      }
      return (performance.now() - start) / 1_000;
    },
    async remove(): Promise<void> {
      await deleteProjects(call, [id]);
      await repository.remove();
    },
  };
}

/** The victim's requests over HTTP. Each throws with what was answered when that is not 200. */
function requests(
  { apiUrl, ingressUrl, localAddress }: Route,
  { api_key }: Organization,
  app: { project_id: string; domain: string },
) {
  const options = { connections: 64, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS };
  const connect = localAddress === undefined ? {} : { localAddress };
  const api = new Pool(apiUrl, { ...options, connect });
  const ingress = new Pool(ingressUrl, { ...options, connect });
  const send = async (pool: Pool, request: Dispatcher.RequestOptions): Promise<void> => {
    const answer = await pool.request({ ...request, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) {
      throw new Error(`${answer.statusCode} ${/"code":"([A-Z0-9_]+)"/.exec(text)?.[1] ?? text.slice(0, 60)}`);
    }
  };
  const headers = { "x-api-key": api_key };
  const project = `/v1/project/${app.project_id}`;
  const paths = [project, "/v1/project", `${project}/envs`, `${project}/historic/deployments`];
  return {
    app: () => send(ingress, { method: "GET", path: "/victim", headers: { host: app.domain } }),
    read: (index: number) =>
      send(api, { method: "GET", path: paths[index % paths.length] ?? project, headers }),
    search: (index: number) =>
      send(api, { method: "GET", path: `${project}/logs/search?q=line-${index}`, headers }),
    write: (index: number) =>
      send(api, {
        method: "PATCH",
        path: `${project}/description`,
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ description: `description ${index}` }),
      }),
    close: async () => {
      await Promise.all([api.destroy(), ingress.destroy()]);
    },
  };
}

/** Writes rows over one connection, which it opens again after a failure, and notes those that were acknowledged. */
function rowWriter(connect: () => Promise<WriteSession>, acknowledged: Set<number>) {
  let session: Promise<WriteSession> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const write = async (index: number): Promise<void> => {
    session ??= connect();
    const own = session;
    try {
      await (await own).insert(index);
      acknowledged.add(index);
    } catch (error) {
      session = undefined;
      await own.then((broken) => broken.close()).catch(() => undefined);
      throw error;
    }
  };
  return {
    /** Behind those before it: a connection runs one statement at a time. */
    insert(index: number): Promise<void> {
      const one = last.then(() => write(index));
      last = one.catch(() => undefined);
      return one;
    },
    close: async () => (await session?.catch(() => undefined))?.close(),
  };
}

/** The minutes between two moments in which the job was due, and those without a run that succeeded. */
async function missedRuns(job: Job, from: number, to: number) {
  const due: string[] = [];
  for (let minute = Math.ceil(from / MINUTE_MS) * MINUTE_MS; minute <= to; minute += MINUTE_MS) {
    due.push(new Date(minute).toISOString());
  }
  let runs: readonly JobRun[] = [];
  const missing = () =>
    due.filter(
      (at) =>
        !runs.some((run) => run.status === "succeeded" && Date.parse(run.scheduled_at) === Date.parse(at)),
    );
  // The last of them may just have begun.
  for (let tries = 0; tries < 60; tries += 1) {
    runs = await job.runs();
    if (missing().length === 0) {
      break;
    }
    await sleep(1_000);
  }
  const { reasons }: MissedRuns = await job.missed();
  const why = reasons.map(({ reason, count }) => `${count} x ${reason}`).join(", ");
  return { due: due.length, missed: missing().map((at) => (why === "" ? at : `${at} (${why})`)) };
}
