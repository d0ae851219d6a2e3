import { type CreateProjectRequest, findHttpPlan, type HttpPlan, type ProjectSpec } from "@slipway/crds";
import { failures } from "../../errors/catalog.ts";
import { inTime } from "../../in-time.ts";
import { refuseBlocked } from "../../organizations/blocked.ts";
import { isGuarded, readNamespace } from "../../organizations/namespace.ts";
import type { Services } from "../../services.ts";
import type { ApiProject } from "../api-project.ts";
import { readClaim } from "../claims.ts";
import { refuseReservedSubdomain } from "../domains/reserved.ts";
import { type KnownSlot, releaseProjectSlot, takeProjectSlot } from "../slots.ts";
import { capabilityFailure } from "./plan-check.ts";
import { planCreation } from "./plan-creation.ts";
import { type CreationPlan, isInCluster, writeProject } from "./write.ts";

/** How long the cluster may take in all to create a project. */
const LIMIT_MS = 20_000;

/**
 * Refuses in the order of refusal, once the body has kept every rule: what the plan lacks (403), a blocked
 * organization (402), a subdomain that the platform keeps (409), what this platform cannot run (503).
 * @throws Failure
 */
export async function admitCreation(
  { spec }: CreateProjectRequest,
  organizationId: string,
  { catalog, ledger, ...platform }: Services,
): Promise<void> {
  const lacking = spec.type === "http" && capabilityFailure(spec, requireHttpPlan(spec, catalog.current));
  if (lacking) throw lacking;
  await refuseBlocked({ ledger }, organizationId);
  if (spec.subdomain !== undefined) refuseReservedSubdomain(spec.subdomain, platform);
  if (spec.type === "job" && !catalog.current.jobsEnabled) throw failures.scheduledJobsUnavailable();
  if (spec.type !== "http") throw failures.projectTypeUnavailable(spec.type);
  if (spec.image === undefined) throw failures.projectFeatureUnavailable("building from a Git repository");
}

/**
 * Creates an admitted project under this id, or finishes a creation that was begun under it.
 * @throws Failure 409 without a free slot or domain, 503 when the organization's namespace cannot take it
 */
export async function createProject(
  request: CreateProjectRequest,
  identity: { organizationId: string; projectId: string },
  services: Services,
): Promise<ApiProject> {
  const plan = planCreation(request, identity, services.domainZone);
  const slot = await takeProjectSlot(services, { ...identity, spec: plan.project.spec });
  try {
    const project = await inTime(LIMIT_MS, async (signal) => {
      const bounded = { ...services, kube: services.kube.until(signal) };
      await refuseTakenDomains(plan, bounded);
      await requireRuntime(plan, bounded);
      return writeProject(bounded.kube, plan);
    });
    return await services.projects.observe(project);
  } catch (error) {
    await releaseUnlessCreated(plan, slot, services);
    throw error;
  }
}

/**
 * Another call with the same Idempotency-Key may have created the project meanwhile: its slot stays then. What cannot
 * be found out now the operator sets right later.
 */
async function releaseUnlessCreated(
  { organizationId, project }: CreationPlan,
  slot: KnownSlot,
  services: Services,
): Promise<void> {
  const created = await isInCluster(services.kube, project).catch(() => true);
  if (created) return;
  const identity = { organizationId, projectId: project.metadata.name };
  await releaseProjectSlot(services, identity, slot).catch(() => undefined);
}

/** A look ahead: the claims themselves, after the project, are what decides. */
async function refuseTakenDomains(
  { hostnames, project, namespace }: CreationPlan,
  { kube }: Services,
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
  if (foreign) throw failures.domainUnavailable(foreign.spec.hostname);
}

async function requireRuntime({ organizationId }: CreationPlan, { kube }: Services): Promise<void> {
  const namespace = await readNamespace(kube, organizationId).catch((error: unknown) => {
    throw failures.clusterUnavailable(error);
  });
  if (!isGuarded(namespace)) throw failures.organizationRuntimeUnavailable();
}

function requireHttpPlan(spec: ProjectSpec, catalog: Services["catalog"]["current"]): HttpPlan {
  const plan = findHttpPlan(catalog, spec.plan);
  // The body was checked against the catalog a moment ago; it may have been reloaded since.
  if (!plan) throw failures.validation([{ field: "plan", message: `unknown plan ${spec.plan}` }]);
  return plan;
}
