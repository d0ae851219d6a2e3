import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { buildApp } from "../app.ts";
import { routes } from "../routes.ts";
import { PERMISSIONS, type Permission } from "./permissions.ts";

/** The tables of the specification, word for word and not taken from the policy table: limits, scopes and roles. */

const ORGANIZATION = "acme";
const PROJECT = "p1";
const PROXY = "10.1.2.3";

let harness: FakeHarness;
/** The same application with no limit scaled away, behind a proxy that it trusts. */
let app: FakeHarness["app"];
beforeAll(async () => {
  harness = await startFakeHarness({ rateLimitScale: 1 });
  app = buildApp({ ...harness.services, trustedProxies: [PROXY] });
  await harness.project(ORGANIZATION, PROJECT);
});
afterAll(async () => {
  await app.close();
  await harness.close();
});

const key = () =>
  harness.key(ORGANIZATION, "* on organization:*", "* on project:*", "project.exec on project:*");
let address = 0;
/** An address without earlier calls. */
const newAddress = () => `192.0.2.${++address}`;

function call(operation: string, headers: Record<string, string>, from: string) {
  const [method = "", path = ""] = operation.split(" ");
  // Unknown parameters are refused after all that is checked here, and before anything is done.
  const url = `${path.replace(":id", PROJECT)}?surprise=1`;
  return app.inject({
    method: method as "GET",
    url,
    headers: { ...headers, "x-forwarded-for": from },
    remoteAddress: PROXY,
  });
}

/** How many of so many calls pass. */
async function passing(calls: number, send: (index: number) => ReturnType<typeof call>): Promise<number> {
  const statuses: number[] = [];
  for (let index = 0; index < calls; index += 1) {
    statuses.push((await send(index)).statusCode);
  }
  expect(new Set(statuses)).toEqual(new Set(statuses.includes(429) ? [400, 429] : [400]));
  return statuses.filter((status) => status === 400).length;
}

const limits: [string, number, number, "credential" | "address"][] = [
  // Shows: docs/applications.md#limits: HTTP plans | 50 a minute | source address
  ["GET /v1/project/plans", 50, 60, "address"],
  // Shows: docs/applications.md#limits: job plans | 60 a minute | source address
  ["GET /v1/project/job/plans", 60, 60, "address"],
  // Shows: docs/applications.md#limits: storage plans | 50 a minute | source address
  ["GET /v1/project/storage/plans", 50, 60, "address"],
  // Shows: docs/applications.md#limits: database plans | 10 a minute | source address
  ["GET /v1/project/database/plans", 10, 60, "address"],
  // Shows: docs/applications.md#limits: database catalog | 100 a minute | source address
  ["GET /v1/project/database/catalog", 100, 60, "address"],
  // Shows: docs/applications.md#limits: creation | 10 a minute | credential
  ["POST /v1/project", 10, 60, "credential"],
  // Shows: docs/applications.md#limits: list | 100 a minute | credential
  ["GET /v1/project", 100, 60, "credential"],
  // Shows: docs/applications.md#limits: read | 100 a minute | source address
  ["GET /v1/project/:id", 100, 60, "address"],
  // Shows: docs/applications.md#limits: deletion | 10 a minute | credential
  ["DELETE /v1/project/:id", 10, 60, "credential"],
  // Shows: docs/applications.md#limits: name | 10 a minute | source address
  ["PATCH /v1/project/:id/name", 10, 60, "address"],
  // Shows: docs/applications.md#limits: description | 10 a minute | source address
  ["PATCH /v1/project/:id/description", 10, 60, "address"],
  // Shows: docs/applications.md#limits: domain | 10 a minute | source address
  ["PATCH /v1/project/:id/domain", 10, 60, "address"],
  // Shows: docs/applications.md#limits: custom domains | 10 a minute | source address
  ["PATCH /v1/project/:id/custom-domains", 10, 60, "address"],
  // Shows: docs/applications.md#limits: exposure | 5 in 5 minutes | credential
  ["PATCH /v1/project/:id/exposure", 5, 300, "credential"],
  ["PATCH /v1/project/:id/github/deploy-settings", 10, 60, "credential"],
  ["POST /v1/project/:id/deploy", 10, 60, "address"],
  ["POST /v1/project/:id/github/deploy", 10, 60, "address"],
  ["GET /v1/project/:id/builds", 60, 60, "address"],
  ["GET /v1/project/:id/builds/:buildId", 60, 60, "address"],
  ["GET /v1/project/:id/builds/:buildId/logs", 120, 60, "address"],
  ["GET /v1/project/:id/github/builds", 50, 60, "address"],
  ["GET /v1/project/:id/github/builds/:buildId", 50, 60, "address"],
  ["GET /v1/project/:id/github/builds/:buildId/logs", 200, 60, "address"],
];

describe("the limit of", () => {
  // Shows: docs/applications.md#limits: HTTP plans | 50 a minute | source address
  // Shows: docs/applications.md#limits: job plans | 60 a minute | source address
  // Shows: docs/applications.md#limits: storage plans | 50 a minute | source address
  // Shows: docs/applications.md#limits: database plans | 10 a minute | source address
  // Shows: docs/applications.md#limits: database catalog | 100 a minute | source address
  // Shows: docs/applications.md#limits: creation | 10 a minute | credential
  // Shows: docs/applications.md#limits: list | 100 a minute | credential
  // Shows: docs/applications.md#limits: read | 100 a minute | source address
  // Shows: docs/applications.md#limits: deletion | 10 a minute | credential
  // Shows: docs/applications.md#limits: name | 10 a minute | source address
  // Shows: docs/applications.md#limits: description | 10 a minute | source address
  // Shows: docs/applications.md#limits: domain | 10 a minute | source address
  // Shows: docs/applications.md#limits: custom domains | 10 a minute | source address
  // Shows: docs/applications.md#limits: exposure | 5 in 5 minutes | credential
  // Shows: docs/applications.md#errors-project-creation: 429 | `RATE_LIMIT_EXCEEDED`
  it.each(limits)("%s is %i calls in %i seconds, by %s", async (operation, limit, seconds, by) => {
    const [one, from] = [key(), newAddress()];
    expect(await passing(limit + 1, () => call(operation, one, from))).toBe(limit);
    const refused = await call(operation, one, from);
    expect(refused.json()).toMatchObject({ status: "failed", code: "RATE_LIMIT_EXCEEDED" });
    expect(refused.headers["ratelimit-policy"]).toBe(`"default";q=${limit};w=${seconds}`);
    expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(seconds);
    // Another credential from there, and the same one from elsewhere.
    expect((await call(operation, key(), from)).statusCode).toBe(by === "address" ? 429 : 400);
    expect((await call(operation, one, newAddress())).statusCode).toBe(by === "address" ? 400 : 429);
  });

  it("each operation is its own: one that is used up leaves the others alone", async () => {
    const [one, from] = [key(), newAddress()];
    expect(await passing(11, () => call("PATCH /v1/project/:id/name", one, from))).toBe(10);
    expect((await call("PATCH /v1/project/:id/description", one, from)).statusCode).toBe(400);
  });

  // Shows: docs/applications.md#limits: every other operation | 60 a minute | credential
  // Shows: docs/jobs.md#scopes-and-limits: list runs | `project.read`
  // Shows: docs/jobs.md#scopes-and-limits: cost summary | `project.billing.read`
  // Shows: docs/jobs.md#scopes-and-limits: cancel | `project.job-run.cancel`
  // Shows: docs/jobs.md#scopes-and-limits: logs of a run | `project.logs.read`
  // Shows: docs/jobs.md#scopes-and-limits: metrics of a run | `project.metrics.read`
  // Shows: docs/jobs.md#scopes-and-limits: run now | `project.deploy.trigger`
  // Shows: docs/jobs.md#scopes-and-limits: schedule | `project.schedule.update`
  it("an operation that the specification does not list is 60 a minute, by credential", async () => {
    const listed = new Set(limits.map(([operation]) => operation));
    const documented = routes.filter(({ undocumented }) => undocumented !== true);
    const others = documented
      .map(({ method, path }) => `${method} ${path}`)
      // Of servers, not of clients: no address identifies one project.
      .filter((operation) => !listed.has(operation) && !/\/(git\/hooks|payment-webhooks)\//.test(operation));
    expect(others).toContain("PATCH /v1/project/:id/image");
    for (const operation of others) {
      const one = ownerOnly.includes(operation) ? await harness.owner(ORGANIZATION) : key();
      // From ever new addresses: only the document, which needs no credential, is counted by them.
      const all = await passing(61, () => call(operation, one, newAddress()));
      expect(`${operation}: ${all}`).toBe(`${operation}: ${operation === "GET /v1/openapi.json" ? 61 : 60}`);
    }
  });
});

describe("the source address", () => {
  const read = "GET /v1/project/:id";
  // Shows: docs/applications.md#limits: the address is that of a trusted proxy's header, not of a
  it("is what a trusted proxy says, and nothing that a client says of itself", async () => {
    const one = key();
    const direct = (forwarded: string) =>
      app.inject({
        url: `/v1/project/${PROJECT}?surprise=1`,
        headers: { ...one, "x-forwarded-for": forwarded },
        remoteAddress: "198.51.100.7",
      });
    // Every call claims to come from elsewhere.
    expect(await passing(101, () => direct(newAddress()))).toBe(100);
    // Behind the proxy, the last address is the proxy's own; those before it are the client's claim.
    const from = newAddress();
    expect(await passing(101, () => call(read, one, `${newAddress()}, ${from}`))).toBe(100);
  });
});

const ownerOnly = [
  "POST /v1/git/connections",
  "PATCH /v1/git/connections/:connectionId/credentials",
  "DELETE /v1/git/connections/:connectionId",
];

const scopesOnAll: [string, Permission][] = [
  // Shows: docs/git.md#over-v1: list connections, resolve and list repositories, read branches
  ["GET /v1/git/connections", "project.source.update"],
  ["POST /v1/git/connections/:connectionId/repositories/resolve", "project.source.update"],
  ["GET /v1/git/connections/:connectionId/repositories", "project.source.update"],
  ["GET /v1/git/connections/:connectionId/repositories/:repositoryId/branches", "project.source.update"],
];

const scopesOfUsage: [string, Permission][] = [
  // Shows: docs/usage.md#permissions: usage of the organization | `project.billing.read` on all projects
  ["GET /v1/organization/usage", "project.billing.read"],
];

const scopesOnOrganization: [string, Permission][] = [
  // Shows: docs/variable-groups.md#permissions: list and read groups | `organization.variable-groups.read`
  ["GET /v1/organization/variable-groups", "organization.variable-groups.read"],
  ["GET /v1/organization/variable-groups/:groupId", "organization.variable-groups.read"],
  // Shows: docs/variable-groups.md#permissions: create, change and delete groups | `organization.variable-groups.update`
  ["POST /v1/organization/variable-groups", "organization.variable-groups.update"],
  ["PATCH /v1/organization/variable-groups/:groupId", "organization.variable-groups.update"],
  ["DELETE /v1/organization/variable-groups/:groupId", "organization.variable-groups.update"],
  // Shows: docs/webhooks.md#permissions: list and read webhooks and their deliveries | `organization.webhooks.read`
  ["GET /v1/organization/webhooks", "organization.webhooks.read"],
  ["GET /v1/organization/webhooks/:webhookId", "organization.webhooks.read"],
  ["GET /v1/organization/webhooks/:webhookId/deliveries", "organization.webhooks.read"],
  // Shows: docs/webhooks.md#permissions: create, change, test and delete them, rotate secrets, send again | `organization.webhooks.update`
  ["POST /v1/organization/webhooks", "organization.webhooks.update"],
  ["PATCH /v1/organization/webhooks/:webhookId", "organization.webhooks.update"],
  ["DELETE /v1/organization/webhooks/:webhookId", "organization.webhooks.update"],
  ["POST /v1/organization/webhooks/:webhookId/rotate-secret", "organization.webhooks.update"],
  ["POST /v1/organization/webhooks/:webhookId/test", "organization.webhooks.update"],
  [
    "POST /v1/organization/webhooks/:webhookId/deliveries/:deliveryId/redeliver",
    "organization.webhooks.update",
  ],
  // Shows: docs/email.md#permissions: list and read recipients and their mails | `organization.webhooks.read`
  ["GET /v1/organization/email-recipients", "organization.webhooks.read"],
  ["GET /v1/organization/email-recipients/:recipientId", "organization.webhooks.read"],
  ["GET /v1/organization/email-recipients/:recipientId/deliveries", "organization.webhooks.read"],
  // Shows: docs/email.md#permissions: create, confirm, change, test and delete them, send again | `organization.webhooks.update`
  ["POST /v1/organization/email-recipients", "organization.webhooks.update"],
  ["PATCH /v1/organization/email-recipients/:recipientId", "organization.webhooks.update"],
  ["DELETE /v1/organization/email-recipients/:recipientId", "organization.webhooks.update"],
  ["POST /v1/organization/email-recipients/:recipientId/send-confirmation", "organization.webhooks.update"],
  ["POST /v1/organization/email-recipients/:recipientId/confirm", "organization.webhooks.update"],
  ["POST /v1/organization/email-recipients/:recipientId/test", "organization.webhooks.update"],
  [
    "POST /v1/organization/email-recipients/:recipientId/deliveries/:deliveryId/redeliver",
    "organization.webhooks.update",
  ],
  ["GET /v1/organization/log-drains", "organization.log-drains.read"],
  ["GET /v1/organization/log-drains/:drainId", "organization.log-drains.read"],
  ["POST /v1/organization/log-drains", "organization.log-drains.update"],
  ["PATCH /v1/organization/log-drains/:drainId", "organization.log-drains.update"],
  ["DELETE /v1/organization/log-drains/:drainId", "organization.log-drains.update"],
  ["GET /v1/organization/invoices", "organization.invoices.read"],
  ["GET /v1/organization/invoices/:invoiceId", "organization.invoices.read"],
  ["GET /v1/organization/invoices/:invoiceId/charges", "organization.invoices.read"],
  // Shows: docs/budgets.md#over-v1: `GET /v1/organization/budget`
  ["GET /v1/organization/budget", "organization.budget.read"],
  // Shows: docs/budgets.md#over-v1: `PUT /v1/organization/budget`
  ["PUT /v1/organization/budget", "organization.budget.update"],
  // Shows: docs/budgets.md#over-v1: `DELETE /v1/organization/budget`
  ["DELETE /v1/organization/budget", "organization.budget.update"],
];

const scopes: [string, Permission][] = [
  // Shows: docs/applications.md#authentication: read one project | `project.read`
  ["GET /v1/project/:id", "project.read"],
  // Shows: docs/applications.md#authentication: delete | `project.delete`
  ["DELETE /v1/project/:id", "project.delete"],
  // Shows: docs/applications.md#authentication: name | `project.name.update`
  ["PATCH /v1/project/:id/name", "project.name.update"],
  // Shows: docs/applications.md#authentication: description | `project.description.update`
  ["PATCH /v1/project/:id/description", "project.description.update"],
  // Shows: docs/applications.md#authentication: health | `project.health.update`
  ["PATCH /v1/project/:id/health", "project.health.update"],
  // Shows: docs/applications.md#authentication: pre-deploy command | `project.pre-deploy.update`
  ["PATCH /v1/project/:id/pre-deploy", "project.pre-deploy.update"],
  // Shows: docs/applications.md#authentication: sleep | `project.sleep.update`
  ["PATCH /v1/project/:id/sleep", "project.sleep.update"],
  // Shows: docs/applications.md#authentication: command | `project.image.update`
  ["PATCH /v1/project/:id/command", "project.image.update"],
  // Shows: docs/applications.md#authentication: autoscaling | `project.autoscaling.update`
  ["PATCH /v1/project/:id/autoscaling", "project.autoscaling.update"],
  // Shows: docs/applications.md#authentication: subdomain | `project.domain.update`
  ["PATCH /v1/project/:id/domain", "project.domain.update"],
  // Shows: docs/applications.md#authentication: custom domains | `project.domain.update`
  ["PATCH /v1/project/:id/custom-domains", "project.domain.update"],
  // Shows: docs/applications.md#authentication: exposure | `project.domain.update`
  ["PATCH /v1/project/:id/exposure", "project.domain.update"],
  // Shows: docs/applications.md#authentication: schedule | `project.schedule.update`
  // Shows: docs/jobs.md#scopes-and-limits: schedule | `project.schedule.update`
  ["PATCH /v1/project/:id/schedule", "project.schedule.update"],
  // Shows: docs/jobs.md#scopes-and-limits: list runs | `project.read`
  ["GET /v1/project/:id/job-runs", "project.read"],
  // Shows: docs/jobs.md#scopes-and-limits: cost summary | `project.billing.read`
  ["GET /v1/project/:id/job-runs/cost-summary", "project.billing.read"],
  // Shows: docs/jobs.md#scopes-and-limits: cancel | `project.job-run.cancel`
  ["POST /v1/project/:id/job-runs/:runId/cancel", "project.job-run.cancel"],
  // Shows: docs/jobs.md#scopes-and-limits: logs of a run | `project.logs.read`
  ["GET /v1/project/:id/job-runs/:runId/logs", "project.logs.read"],
  // Shows: docs/jobs.md#scopes-and-limits: metrics of a run | `project.metrics.read`
  ["GET /v1/project/:id/job-runs/:runId/metrics", "project.metrics.read"],
  // Shows: docs/applications.md#authentication: one-off runs: list, read | `project.read`
  ["GET /v1/project/:id/runs", "project.read"],
  ["GET /v1/project/:id/runs/:runId", "project.read"],
  // Shows: docs/applications.md#authentication: one-off runs: cost summary | `project.billing.read`
  ["GET /v1/project/:id/runs/cost-summary", "project.billing.read"],
  // Shows: docs/applications.md#authentication: one-off runs: start | `project.run.start`
  ["POST /v1/project/:id/runs", "project.run.start"],
  // Shows: docs/applications.md#authentication: one-off runs: cancel | `project.job-run.cancel`
  ["POST /v1/project/:id/runs/:runId/cancel", "project.job-run.cancel"],
  // Shows: docs/applications.md#authentication: one-off runs: logs | `project.logs.read`
  ["GET /v1/project/:id/runs/:runId/logs", "project.logs.read"],
  // Where the specification names none.
  // Shows: docs/applications.md#authentication: historic deployments | `project.read`
  ["GET /v1/project/:id/historic/deployments", "project.read"],
  // Shows: docs/undelete.md#over-v1: `POST /v1/project/:id/undelete` | `project.delete`
  ["POST /v1/project/:id/undelete", "project.delete"],
  // Shows: docs/applications.md#authentication: application logs | `project.logs.read`
  ["GET /v1/project/:id/logs", "project.logs.read"],
  // Shows: docs/logs.md#over-v1: `GET /v1/project/:id/logs/search`
  ["GET /v1/project/:id/logs/search", "project.logs.read"],
  // Shows: docs/applications.md#authentication: read envs | `project.envs.read`
  ["GET /v1/project/:id/envs", "project.envs.read"],
  // Shows: docs/applications.md#authentication: change envs | `project.envs.update`
  ["PATCH /v1/project/:id/envs", "project.envs.update"],
  // Shows: docs/variable-groups.md#permissions: attach groups to a project | `project.envs.update`
  ["PATCH /v1/project/:id/variable-groups", "project.envs.update"],
  // Shows: docs/applications.md#authentication: image | `project.image.update`
  ["PATCH /v1/project/:id/image", "project.image.update"],
  // Shows: docs/applications.md#authentication: plan | `project.plan.update`
  ["PATCH /v1/project/:id/plan", "project.plan.update"],
  // Shows: docs/applications.md#authentication: pause | `project.lifecycle.update`
  ["POST /v1/project/:id/pause", "project.lifecycle.update"],
  // Shows: docs/applications.md#authentication: resume | `project.lifecycle.update`
  ["POST /v1/project/:id/resume", "project.lifecycle.update"],
  // Shows: docs/applications.md#authentication: rollback | `project.deploy.trigger`, and the scope of
  ["POST /v1/project/:id/rollback", "project.deploy.trigger"],
  // Shows: docs/jobs.md#scopes-and-limits: run now | `project.deploy.trigger`
  ["POST /v1/project/:id/job-runs", "project.deploy.trigger"],
  // Shows: docs/exec.md#over-v1: `GET /v1/project/:id/instances/:instance/exec`
  ["GET /v1/project/:id/instances/:instance/exec", "project.exec"],
  // Shows: docs/databases-api.md#deletion-and-settings: read the connection | `project.read`
  ["GET /v1/project/:id/database/connection", "project.read"],
  // Shows: docs/databases-api.md#deletion-and-settings: renew the password | `database.credentials.renew`
  ["POST /v1/project/:id/database/credentials/renew", "database.credentials.renew"],
  ["GET /v1/project/:id/backups", "project.backup.read"],
  // Shows: docs/backups.md#over-v1: create one | `project.backup.create`
  ["POST /v1/project/:id/backups", "project.backup.create"],
  // Shows: docs/backups.md#over-v1: list and read them, and the policy | `project.backup.read`
  ["GET /v1/project/:id/backups/policy", "project.backup.read"],
  // Shows: docs/backups.md#over-v1: verify one, change the policy | `project.backup.update`
  ["PUT /v1/project/:id/backups/policy", "project.backup.update"],
  ["GET /v1/project/:id/backups/:backupId", "project.backup.read"],
  // Shows: docs/backups.md#over-v1: delete one | `project.backup.delete`
  ["DELETE /v1/project/:id/backups/:backupId", "project.backup.delete"],
  ["POST /v1/project/:id/backups/:backupId/verify", "project.backup.update"],
  // Shows: docs/backups.md#over-v1: restore one | `project.backup.restore`
  ["POST /v1/project/:id/backups/:backupId/restore", "project.backup.restore"],
  ["GET /v1/project/:id/source", "project.source.update"],
  ["PUT /v1/project/:id/source", "project.source.update"],
  ["DELETE /v1/project/:id/source", "project.source.update"],
  ["PATCH /v1/project/:id/build-settings", "project.source.update"],
  ["GET /v1/project/:id/source/branches", "project.source.update"],
  ["POST /v1/project/:id/deploy", "project.deploy.trigger"],
  ["GET /v1/project/:id/builds", "project.logs.read"],
  ["GET /v1/project/:id/builds/:buildId", "project.logs.read"],
  ["GET /v1/project/:id/builds/:buildId/logs", "project.logs.read"],
  ["POST /v1/project/:id/github/deploy", "project.deploy.trigger"],
  ["GET /v1/project/:id/github/builds", "project.logs.read"],
  ["GET /v1/project/:id/github/builds/:buildId", "project.logs.read"],
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/github/builds/:buildId/logs`
  ["GET /v1/project/:id/github/builds/:buildId/logs", "project.logs.read"],
  ["PATCH /v1/project/:id/github/commands", "project.source.update"],
  ["PATCH /v1/project/:id/github/deploy-settings", "project.source.update"],
  // Shows: docs/usage.md#permissions: cost of a project | `project.billing.read`
  ["GET /v1/project/:id/cost", "project.billing.read"],
  // Shows: docs/databases-api.md#deletion-and-settings: read snapshots | `project.metrics.read`
  ["GET /v1/project/:id/metrics", "project.metrics.read"],
  // Shows: docs/databases-api.md#deletion-and-settings: read capabilities | `project.metrics.read`
  ["GET /v1/project/:id/metrics/capabilities", "project.metrics.read"],
  // Shows: docs/alerts.md#over-v1: `GET /v1/project/:id/alerts` | `project.alerts.read`
  ["GET /v1/project/:id/alerts", "project.alerts.read"],
  // Shows: docs/alerts.md#over-v1: `PUT /v1/project/:id/alerts` | `project.alerts.update`
  ["PUT /v1/project/:id/alerts", "project.alerts.update"],
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/summary`
  ["GET /v1/project/:id/metrics/network/summary", "project.metrics.read"],
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/status-codes`
  ["GET /v1/project/:id/metrics/network/status-codes", "project.metrics.read"],
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/routes`
  ["GET /v1/project/:id/metrics/network/routes", "project.metrics.read"],
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/user-agents`
  ["GET /v1/project/:id/metrics/network/user-agents", "project.metrics.read"],
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/request-events`
  ["GET /v1/project/:id/metrics/network/request-events", "project.metrics.read"],
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/source-ips`
  ["GET /v1/project/:id/metrics/network/source-ips", "project.metrics.read"],
];

describe("the scope of", () => {
  it("every operation on a project is in the table", () => {
    const onProject = routes.filter(({ path }) => path.includes("/:id"));
    expect(onProject.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      scopes.map(([operation]) => operation).sort(),
    );
  });

  // Shows: docs/applications.md#authentication: read one project | `project.read`
  // Shows: docs/applications.md#authentication: delete | `project.delete`
  // Shows: docs/applications.md#authentication: name | `project.name.update`
  // Shows: docs/applications.md#authentication: description | `project.description.update`
  // Shows: docs/applications.md#authentication: health | `project.health.update`
  // Shows: docs/applications.md#authentication: pre-deploy command | `project.pre-deploy.update`
  // Shows: docs/applications.md#authentication: sleep | `project.sleep.update`
  // Shows: docs/applications.md#authentication: command | `project.image.update`
  // Shows: docs/applications.md#authentication: autoscaling | `project.autoscaling.update`
  // Shows: docs/applications.md#authentication: one-off runs: list, read | `project.read`
  // Shows: docs/applications.md#authentication: one-off runs: cost summary | `project.billing.read`
  // Shows: docs/applications.md#authentication: one-off runs: start | `project.run.start`
  // Shows: docs/applications.md#authentication: one-off runs: cancel | `project.job-run.cancel`
  // Shows: docs/applications.md#authentication: one-off runs: logs | `project.logs.read`
  // Shows: docs/applications.md#authentication: subdomain | `project.domain.update`
  // Shows: docs/applications.md#authentication: custom domains | `project.domain.update`
  // Shows: docs/applications.md#authentication: exposure | `project.domain.update`
  // Shows: docs/applications.md#authentication: schedule | `project.schedule.update`
  // Shows: docs/applications.md#authentication: historic deployments | `project.read`
  // Shows: docs/applications.md#authentication: application logs | `project.logs.read`
  // Shows: docs/applications.md#authentication: read envs | `project.envs.read`
  // Shows: docs/applications.md#authentication: change envs | `project.envs.update`
  // Shows: docs/applications.md#authentication: image | `project.image.update`
  // Shows: docs/applications.md#authentication: plan | `project.plan.update`
  // Shows: docs/applications.md#authentication: pause | `project.lifecycle.update`
  // Shows: docs/applications.md#authentication: resume | `project.lifecycle.update`
  // Shows: docs/applications.md#authentication: rollback | `project.deploy.trigger`, and the scope of
  // Shows: docs/databases-api.md#deletion-and-settings: read the connection | `project.read`
  // Shows: docs/databases-api.md#deletion-and-settings: renew the password | `database.credentials.renew`
  // Shows: docs/databases-api.md#deletion-and-settings: read snapshots | `project.metrics.read`
  // Shows: docs/databases-api.md#deletion-and-settings: read capabilities | `project.metrics.read`
  it.each(scopes)("%s is %s on the project, or on all", async (operation, permission) => {
    const others = PERMISSIONS.filter((other) => other !== permission);
    const by = async (...grants: string[]) =>
      (await call(operation, harness.key(ORGANIZATION, ...grants), newAddress())).statusCode;
    expect(await by(`${permission} on project:${PROJECT}`)).toBe(400);
    expect(await by(`${permission} on project:*`)).toBe(400);
    expect(await by(`${permission} on project:p2`, `${permission} on organization:*`)).toBe(403);
    expect(await by(...others.map((other) => `${other} on project:*`))).toBe(403);
  });
});

describe("what an organization's projects share", () => {
  it("is all in the table", () => {
    const found = routes.filter(({ path }) =>
      /^\/v1\/organization\/(variable-groups|webhooks|email-recipients|log-drains|invoices|budget)/.test(
        path,
      ),
    );
    expect(found.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      scopesOnOrganization.map(([operation]) => operation).sort(),
    );
  });

  // Shows: docs/variable-groups.md#permissions: list and read groups | `organization.variable-groups.read`
  // Shows: docs/variable-groups.md#permissions: create, change and delete groups | `organization.variable-groups.update`
  // Shows: docs/webhooks.md#permissions: list and read webhooks and their deliveries | `organization.webhooks.read`
  // Shows: docs/webhooks.md#permissions: create, change, test and delete them, rotate secrets, send again | `organization.webhooks.update`
  // Shows: docs/email.md#permissions: list and read recipients and their mails | `organization.webhooks.read`
  // Shows: docs/email.md#permissions: create, confirm, change, test and delete them, send again | `organization.webhooks.update`
  it.each(scopesOnOrganization)("%s needs %s on the organization", async (operation, permission) => {
    const others = PERMISSIONS.filter((other) => other !== permission);
    const by = async (...grants: string[]) =>
      (await call(operation, harness.key(ORGANIZATION, ...grants), newAddress())).statusCode;
    expect(await by(`${permission} on organization:*`)).toBe(400);
    expect(await by(`${permission} on project:*`, `${permission} on project:${PROJECT}`)).toBe(403);
    expect(await by(...others.map((other) => `${other} on organization:*`))).toBe(403);
  });
});

describe("what concerns all projects", () => {
  // Shows: docs/usage.md#permissions: usage of the organization | `project.billing.read` on all projects
  it.each([...scopesOnAll, ...scopesOfUsage])(
    "%s needs %s on all projects",
    async (operation, permission) => {
      const others = PERMISSIONS.filter((other) => other !== permission);
      const by = async (...grants: string[]) =>
        (await call(operation, harness.key(ORGANIZATION, ...grants), newAddress())).statusCode;
      expect(await by(`${permission} on project:*`)).toBe(400);
      expect(await by(`${permission} on project:${PROJECT}`, `${permission} on organization:*`)).toBe(403);
      expect(await by(...others.map((other) => `${other} on project:*`))).toBe(403);
    },
  );
});

describe("Git", () => {
  // Shows: docs/git.md#over-v1: read providers and runtimes | any credential of the organization
  it.each(["GET /v1/git/providers", "GET /v1/git/runtime-catalog"])(
    "%s needs no scope",
    async (operation) => {
      expect((await call(operation, harness.key(ORGANIZATION), newAddress())).statusCode).toBe(400);
    },
  );

  // Shows: docs/git.md#over-v1: 403 `OWNER_SESSION_REQUIRED` | operations that change a credential
  it.each(ownerOnly)("%s needs an owner's session", async (operation) => {
    expect((await call(operation, key(), newAddress())).statusCode).toBe(403);
    const grants = ["* on organization:*", "* on project:*"];
    for (const role of ["assistant", "member"] as const) {
      const user = await harness.user(ORGANIZATION, role, ...grants);
      expect((await call(operation, user, newAddress())).statusCode).toBe(403);
    }
    expect((await call(operation, await harness.owner(ORGANIZATION), newAddress())).statusCode).toBe(400);
  });
});

describe("a role", () => {
  const read = "GET /v1/project/:id";
  // Shows: docs/applications.md#authentication: 4. owners have every permission
  it("owner may everything without a grant", async () => {
    const owner = await harness.user(ORGANIZATION, "owner");
    for (const [operation] of scopes) {
      expect((await call(operation, owner, newAddress())).statusCode).toBe(400);
    }
    expect((await call("POST /v1/project", owner, newAddress())).statusCode).toBe(400);
  });

  // Shows: docs/applications.md#list: only projects that the credential can read; no scope of its own
  // Shows: docs/applications.md#authentication: 4. assistants, members and keys have what they were
  it.each(["assistant", "member"] as const)("%s may what it was granted, and nothing else", async (role) => {
    const nothing = await harness.user(ORGANIZATION, role);
    expect((await call(read, nothing, newAddress())).statusCode).toBe(403);
    expect((await call("POST /v1/project", nothing, newAddress())).statusCode).toBe(403);
    const reader = await harness.user(ORGANIZATION, role, `project.read on project:${PROJECT}`);
    expect((await call(read, reader, newAddress())).statusCode).toBe(400);
    expect((await call("DELETE /v1/project/:id", reader, newAddress())).statusCode).toBe(403);
    const list = await app.inject({ url: "/v1/project", headers: reader });
    expect(list.json().data.projects.map(({ id }: { id: string }) => id)).toEqual([PROJECT]);
    const empty = await app.inject({ url: "/v1/project", headers: nothing });
    expect(empty.json().data).toMatchObject({ projects: [], pagination: { total: 0 } });
  });
});
