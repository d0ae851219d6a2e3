import { type KubernetesObject, onceBound } from "@slipway/controller-runtime";
import {
  type CreateProjectRequest,
  databaseNames,
  findHttpPlan,
  type HttpPlan,
  isDatabaseType,
  isInstanceType,
  type Project,
  type ProjectSpec,
} from "@slipway/crds";
import type { Usage } from "@slipway/ledger";
import { checkFirstBuild, type FirstBuild, followFirstBuild, startFirstBuild } from "../../builds/first.ts";
import { requireBuilds } from "../../builds/platform.ts";
import { withDeadline } from "../../concurrency.ts";
import { type CredentialsSecret, decodeCredentials, newCredentials } from "../../databases/connection.ts";
import { refuseReservedSubdomain } from "../../domains/spec.ts";
import { failures } from "../../errors/catalog.ts";
import { isProvisioned, readNamespace, refuseStart } from "../../organizations/service.ts";
import type { Services } from "../../services.ts";
import type { ChangeServices } from "../change.ts";
import { readClaim } from "../claims.ts";
import { type QuotaVersion, releaseProjectQuota, reserveProjectQuota } from "../quotas.ts";
import { capabilityFailure, requireCountedRequests, sleepFailure } from "../spec-errors.ts";
import { type Attempt, failedAttempt, nothingToUndo } from "./outcome.ts";
import { planCreation } from "./plan-creation.ts";
import { envShards, variablesUsage } from "./secrets.ts";
import { type CreationPlan, isDeleting, readLive, type WrittenObjects, writeProject } from "./write.ts";

/** Creates a project: checks, reserves quota, writes its objects, starts its first build. */

/** How long the cluster may take in all to create a project. */
const LIMIT_MS = 20_000;

/**
 * Refuses in the order of refusal, once the body has kept every rule: what the plan lacks (403), a blocked
 * organization (402), a subdomain that the platform keeps (409). What this platform cannot run (503) is refused by
 * {@link createProject}, after quota and domains.
 * @throws Failure
 */
export async function admitCreation(
  { spec }: CreateProjectRequest,
  organizationId: string,
  {
    catalog,
    ledger,
    now,
    ...platform
  }: Pick<Services, "catalog" | "domainZone" | "ledger" | "now" | "reservedHostnames">,
): Promise<void> {
  const plan = isInstanceType(spec.type) ? requireHttpPlan(spec, catalog.current) : undefined;
  const lacking = plan && (capabilityFailure(spec, plan) ?? sleepFailure(spec, plan));
  if (lacking) {
    throw lacking;
  }
  await refuseStart({ ledger, now }, organizationId);
  if (spec.subdomain !== undefined) {
    refuseReservedSubdomain(spec.subdomain, platform);
  }
}

/** @throws Failure 503 for what this platform cannot run */
export function requirePlatform(
  spec: ProjectSpec,
  {
    catalog,
    supports,
    backups,
    scalesByRequests,
  }: Pick<Services, "catalog" | "supports" | "backups" | "scalesByRequests">,
): void {
  if (spec.type === "job" && !catalog.current.jobsEnabled) {
    throw failures.scheduledJobsUnavailable();
  }
  const isOff = isDatabaseType(spec.type) && !catalog.current.databasesEnabled;
  if (isOff || !supports(spec.type, spec.version)) {
    throw failures.projectTypeUnavailable(spec.type, spec.version);
  }
  if (isDatabaseType(spec.type) && !supports(spec.type, spec.version, spec.instances)) {
    throw failures.projectTypeUnavailable(spec.type, spec.version, spec.instances);
  }
  if (spec.database?.restoreFrom !== undefined && !backups()) {
    throw failures.backupsUnavailable();
  }
  requireCountedRequests(spec, scalesByRequests);
}

/** What a creation depends on. */
export type CreationServices = ChangeServices &
  Pick<
    Services,
    | "backups"
    | "builds"
    | "supports"
    | "catalog"
    | "git"
    | "ledger"
    | "logger"
    | "repositoryIds"
    | "scalesByRequests"
    | "usage"
  >;

/**
 * Creates an admitted project under this id, or completes one that was begun under it: `leftover` is set where one may exist.
 * Refusals: 409 when the quota of the plan is exhausted or the domain is claimed, 503 when the organization's namespace is not
 * provisioned.
 */
export async function createProject(
  sent: CreateProjectRequest,
  identity: { organizationId: string; projectId: string; leftover?: boolean },
  services: CreationServices,
): Promise<Attempt> {
  const { organizationId, projectId, leftover = false } = identity;
  const request = { ...sent, spec: withKeptSource(sent.spec, services) };
  const plan = planCreation(
    request,
    { organizationId, projectId },
    { zone: services.domainZone, newCredentials },
  );
  const written: WrittenObjects = { secrets: [] };
  const usage = usageOf(request, plan);
  let quota: QuotaVersion;
  let project: Project;
  let first: FirstBuild | undefined;
  try {
    const { source, github } = request.spec;
    if (source !== undefined || github !== undefined) {
      requireBuilds(services);
    }
    first = await checkFirstBuild(plan.project, organizationId, services);
    await services.usage.reserve(organizationId, usage);
    quota = await reserveProjectQuota(services, { organizationId, projectId, spec: plan.project.spec });
    project = await withDeadline(LIMIT_MS, async (signal) => {
      const bounded = { ...services, kube: services.kube.until(signal) };
      await refuseClaimedDomains(plan, bounded);
      requirePlatform(request.spec, bounded);
      await requireRuntime(plan, bounded);
      const created = await onceBound(() => writeProject(bounded.kube, plan, written));
      if (first) {
        await startFirstBuild(created, first, { ...bounded, logger: services.logger });
      }
      return created;
    });
  } catch (error) {
    const attempt = failedAttempt(error, { organizationId, projectId }, services, written);
    if (attempt.undo && !leftover) {
      await services.usage.release(organizationId, usage);
    }
    // Without a reservation this call has written nothing.
    if (quota === undefined && !leftover) {
      return { ...attempt, undo: attempt.undo && nothingToUndo };
    }
    if (attempt.undo === undefined) {
      await releaseUnlessCreated(plan, quota, services);
    }
    return attempt;
  }
  if (first) {
    await followFirstBuild(project, first, services);
  }
  const credentials = credentialsIn(written.secrets, projectId);
  return { project: await services.projects.observe(project), ...(credentials ? { credentials } : {}) };
}

function withKeptSource(spec: ProjectSpec, { repositoryIds }: Pick<Services, "repositoryIds">): ProjectSpec {
  return spec.source === undefined ? spec : { ...spec, source: repositoryIds.kept(spec.source) };
}

/** What a creation counts for against the organization's ceilings. */
function usageOf({ spec, envs }: CreateProjectRequest, { project }: CreationPlan): Usage[] {
  const { name } = project.metadata;
  return [
    { kind: "projects", name, amount: 1 },
    ...(spec.customDomains?.length
      ? [{ kind: "customDomains", name, amount: spec.customDomains.length } as const]
      : []),
    ...variablesUsage(envShards(name, envs)),
  ];
}

/** The content of a database's Secret, which an earlier call or the operator may have written. */
function credentialsIn(secrets: readonly KubernetesObject[], projectId: string) {
  const { credentials: name } = databaseNames(projectId);
  const secret: CredentialsSecret | undefined = secrets.find(({ metadata }) => metadata?.name === name);
  return secret && decodeCredentials(secret);
}

/** A write whose outcome is unknown may have succeeded. What cannot be read now the operator corrects later. */
async function releaseUnlessCreated(
  { organizationId, project }: CreationPlan,
  quota: QuotaVersion,
  services: Pick<Services, "kube" | "ledger">,
): Promise<void> {
  const identity = { organizationId, projectId: project.metadata.name };
  const stays = await readLive(services.kube, identity).then(
    (live) => live !== undefined && !isDeleting(live),
    () => true,
  );
  if (!stays) {
    await releaseProjectQuota(services, identity, quota).catch(() => undefined);
  }
}

/** An early check: the claims themselves, after the project, decide. */
async function refuseClaimedDomains(
  { hostnames, project, namespace }: CreationPlan,
  { kube }: Pick<Services, "kube">,
): Promise<void> {
  const claims = await Promise.all(hostnames.map(({ hostname }) => readClaim(kube, hostname))).catch(
    (error: unknown) => {
      throw failures.clusterUnavailable(error);
    },
  );
  const foreign = claims.find((claim) => {
    const holder = claim?.spec.projectRef;
    return holder && (holder.namespace !== namespace || holder.name !== project.metadata.name);
  });
  if (foreign) {
    throw failures.domainUnavailable(foreign.spec.hostname);
  }
}

async function requireRuntime(
  { organizationId }: CreationPlan,
  { kube }: Pick<Services, "kube">,
): Promise<void> {
  const namespace = await readNamespace(kube, organizationId).catch((error: unknown) => {
    throw failures.clusterUnavailable(error);
  });
  if (!isProvisioned(namespace)) {
    throw failures.organizationRuntimeUnavailable();
  }
}

function requireHttpPlan(spec: ProjectSpec, catalog: Services["catalog"]["current"]): HttpPlan {
  const plan = findHttpPlan(catalog, spec.plan);
  // The body was checked against the catalog a moment ago; it may have been reloaded since.
  if (!plan) {
    throw failures.validation([{ field: "plan", message: `unknown plan ${spec.plan}` }]);
  }
  return plan;
}
