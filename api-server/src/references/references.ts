import { type EnvironmentVariable, organizationNamespace, type Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { type BoundReferences, bindReferences, needsBinding, type Referrer } from "./bind.ts";

/**
 * Binds the references of variables to projects of the organization, by what this replica has in memory; where that lacks one, by
 * a list that is read live: another replica may have created it a moment ago.
 * @throws what {@link bindReferences} throws; Failure 503 when the cluster does not answer
 */
export async function checkReferences(
  variables: readonly EnvironmentVariable[],
  referrer: Referrer & { organizationId: string },
  { kube, projects }: Pick<Services, "kube" | "projects">,
): Promise<BoundReferences | undefined> {
  if (!needsBinding(variables, referrer.type)) {
    return undefined;
  }
  const { organizationId } = referrer;
  const known = projects.list(organizationId).map(({ resource }) => resource);
  try {
    return bindReferences(variables, referrer, known);
  } catch (error) {
    if (!isUnknown(error)) {
      throw error;
    }
  }
  const namespace = organizationNamespace(organizationId);
  const live = await kube.listAll<Project>(projectResource, { namespace }).catch((error: unknown) => {
    throw failures.clusterUnavailable(error);
  });
  return bindReferences(variables, referrer, live);
}

function isUnknown(error: unknown): boolean {
  const errors = error instanceof Failure ? error.extra.errors : undefined;
  return Array.isArray(errors) && errors.some((one: { code?: string }) => one.code === "REFERENCE_UNKNOWN");
}
