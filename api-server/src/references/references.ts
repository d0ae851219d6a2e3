import { type EnvironmentVariable, organizationNamespace, type Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { type BoundReferences, bindReferences, needsBinding } from "./bind.ts";
import type { Referrer } from "./target-finder.ts";

/**
 * Binds the references of variables to projects of the organization.
 * @throws what {@link bindReferences} and {@link withProjects} throw
 */
export async function checkReferences(
  variables: readonly EnvironmentVariable[],
  referrer: Referrer & { organizationId: string },
  services: Pick<Services, "kube" | "projects">,
): Promise<BoundReferences | undefined> {
  return needsBinding(variables, referrer.type)
    ? withProjects(referrer.organizationId, services, (projects) =>
        bindReferences(variables, referrer, projects),
      )
    : undefined;
}

/**
 * Binds references by what this replica has in memory; where that lacks a project, by a list that is read live: another replica may
 * have created it a moment ago.
 * @param bind changes nothing when it refuses a reference, since it may run twice
 * @throws what `bind` throws; Failure 503 when the cluster does not answer
 */
export async function withProjects<T>(
  organizationId: string,
  { kube, projects }: Pick<Services, "kube" | "projects">,
  bind: (projects: readonly Project[]) => T | Promise<T>,
): Promise<T> {
  try {
    return await bind(projects.list(organizationId).map(({ resource }) => resource));
  } catch (error) {
    if (!isUnknown(error)) {
      throw error;
    }
  }
  const namespace = organizationNamespace(organizationId);
  const live = await kube.listAll<Project>(projectResource, { namespace }).catch((error: unknown) => {
    throw failures.clusterUnavailable(error);
  });
  return bind(live);
}

function isUnknown(error: unknown): boolean {
  const errors = error instanceof Failure ? error.extra.errors : undefined;
  return Array.isArray(errors) && errors.some((one: { code?: string }) => one.code === "REFERENCE_UNKNOWN");
}
