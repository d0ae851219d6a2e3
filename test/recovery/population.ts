/** What users have before the platform is lost: two organizations with applications, a job, databases, keys and a domain. */
import { mariadbDriver, postgresqlDriver } from "../chaos/support/engines.ts";
import { apiClient, createProject, httpProject, uniqueName, untilStatus } from "../e2e/support/api.ts";
import { backUp } from "../e2e/support/backups.ts";
import {
  createDatabase,
  type DatabaseProject,
  databaseProject,
  untilReady,
} from "../e2e/support/databases.ts";
import { eventually } from "../e2e/support/eventually.ts";
import { EVERY_MINUTE, Job } from "../e2e/support/jobs.ts";
import { admin, createOrganization, type Organization } from "../e2e/support/organization.ts";

/** Rows of each database that has a backup. */
export const ROWS = 1_000;
/** Projects altogether. */
const PROJECTS = 50;
const HOSTNAME = `${uniqueName("shop")}.example.com`;

export interface Population {
  organizations: [Organization, Organization];
  /** A key of the first organization with one grant. */
  narrowKey: string;
  applications: { id: string; domain: string }[];
  /** Applications that are paused. */
  paused: string[];
  hostname: string;
  job: string;
  /** With a backup of `ROWS` rows. */
  databases: { engine: "PostgreSQL" | "MariaDB"; project: DatabaseProject }[];
  /** Without a backup. */
  emptyDatabase: string;
}

const postgresqlBody = () => databaseProject("db-basic", { type_project: "postgresql", version: "17" });

export async function populate(log: (line: string) => void): Promise<Population> {
  const organizations: Population["organizations"] = [
    await createOrganization("First"),
    await createOrganization("Second"),
  ];
  const [first, second] = organizations;
  const call = apiClient(first.api_key);
  const other = apiClient(second.api_key);
  log("creating applications, a job and databases");
  const withEnv = (name: string) =>
    httpProject(name, { envs: [{ name: "GREETING", value: `from ${name}` }] });
  const applications = [
    await eventually(() => createProject(call, withEnv("shop-one"))),
    await eventually(() => createProject(other, withEnv("shop-two"))),
  ].map(({ project_id, domain }) => ({ id: project_id, domain }));
  const job = await Job.create(call, { name: "recovery-job", cron: EVERY_MINUTE, script: "echo done" });
  const databases = await Promise.all([
    createDatabase(call, postgresqlBody(), first.organization_id),
    createDatabase(call, mariadbDriver.body(), first.organization_id),
    createDatabase(call, postgresqlBody(), first.organization_id),
  ]);
  const [postgresql, mariadb, empty] = databases as [DatabaseProject, DatabaseProject, DatabaseProject];
  const paused = await pausedApplications(call, PROJECTS - applications.length - 1 - databases.length);
  await Promise.all([
    untilStatus(call, applications[0]?.id ?? "", "running"),
    untilStatus(other, applications[1]?.id ?? "", "running"),
  ]);
  const backedUp: Population["databases"] = [
    { engine: "PostgreSQL", project: postgresql },
    { engine: "MariaDB", project: mariadb },
  ];
  log("writing rows, and backing them up");
  for (const { engine, project } of backedUp) {
    await untilReady(project, 300_000);
    const session = await eventually(() => engineOf(engine).open(project));
    for (let id = 1; id <= ROWS; id += 1) {
      await session.insert(id);
    }
    await session.close();
    await backUp(call, project.id);
  }
  await untilReady(empty);
  log("verifying a domain, and waiting for two runs");
  const domains = { custom_domains: [HOSTNAME] };
  const changed = await call("PATCH", `/v1/project/${applications[0]?.id}/custom-domains`, domains);
  if (changed.status >= 300) {
    throw new Error(`the domain was answered ${changed.status} ${changed.body.message}`);
  }
  await admin("domain", "verify", "--hostname", HOSTNAME);
  const { api_key } = await admin<{ api_key: string }>(
    ...["api-key", "create", "--organization", first.organization_id],
    ...["--grant", `project.read on project:${applications[0]?.id}`],
  );
  await eventually(async () => {
    if ((await job.runs()).filter(({ status }) => status === "succeeded").length < 2) {
      throw new Error("no two runs");
    }
  });
  return {
    organizations,
    narrowKey: api_key,
    applications,
    paused,
    hostname: HOSTNAME,
    job: job.id,
    databases: backedUp,
    emptyDatabase: empty.id,
  };
}

export const engineOf = (name: "PostgreSQL" | "MariaDB") =>
  name === "PostgreSQL" ? postgresqlDriver : mariadbDriver;

async function pausedApplications(call: ReturnType<typeof apiClient>, count: number): Promise<string[]> {
  const ids: string[] = [];
  const left = Array.from({ length: count }, (_, index) => index);
  const worker = async () => {
    for (let index = left.pop(); index !== undefined; index = left.pop()) {
      const { project_id } = await createProject(call, httpProject(`paused-${index}`));
      const paused = await call("POST", `/v1/project/${project_id}/pause`);
      if (paused.status >= 300) {
        throw new Error(`pause was answered ${paused.status} ${paused.body.message}`);
      }
      ids.push(project_id);
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  return ids;
}
