import type { DomainClaim } from "@slipway/crds";
import { KubeError } from "@slipway/kube";
import { hasTombstone, insertTombstone } from "@slipway/ledger";
import type { Principal } from "../../../auth/principal.ts";
import { failures } from "../../../errors/catalog.ts";
import { defineRoute } from "../../../http/route.ts";
import { askLedger } from "../../../ledger-call.ts";
import type { ApiProject } from "../../../projects/api-project.ts";
import { domainClaimResource, projectResource } from "../../../projects/kinds.ts";
import { releaseProjectSlot } from "../../../projects/slots.ts";
import type { Services } from "../../../services.ts";
import { messageOnly } from "./schemas.ts";

/** How long an answer may wait for the platform to let go of the project's name and domain. */
const RELEASE_LIMIT_MS = 25_000;

export const remove = defineRoute({
  operationId: "deleteProject",
  method: "DELETE",
  path: "/v1/project/:id",
  summary: "Delete a project for good",
  description: "200 means that nothing of the project runs any more and that its name and domain are free.",
  tags: ["Projects"],
  responses: { 200: { description: "Deleted.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ principal, project, params }, services) => {
    const { organizationId } = principal as Principal;
    const { id } = params as { id: string };
    if (!project) return refuseMissing(organizationId, id, services);
    if (project.resource.metadata.deletionTimestamp !== undefined) throw failures.projectAlreadyDeleted();
    // First: a crash between the two leaves a project that can be deleted again.
    await askLedger(() => insertTombstone(services.ledger, organizationId, id));
    await deleteResource(project, services);
    if (!(await services.projects.waitUntilGone(project.resource, RELEASE_LIMIT_MS))) {
      throw failures.domainReleasePending();
    }
    await releaseDomain(project, services);
    // The operator gives it back with the project, or finds it later; this is for whoever creates the next one at once.
    await releaseProjectSlot(services, { organizationId, projectId: id }).catch(() => undefined);
    return { status: 200, body: { status: "success", message: "project deleted" } };
  },
});

async function refuseMissing(organizationId: string, id: string, { ledger }: Services): Promise<never> {
  const deletedBefore = await askLedger(() => hasTombstone(ledger, organizationId, id));
  throw deletedBefore ? failures.projectAlreadyDeleted() : failures.projectNotFound();
}

/** The operator lets go of the domain before the project; it may never have seen a project that lived for a moment. */
async function releaseDomain({ domain, resource }: ApiProject, { kube }: Services): Promise<void> {
  if (domain === undefined) return;
  const ref = { name: domain };
  try {
    const claim = await kube.getOrUndefined<DomainClaim>(domainClaimResource, ref);
    if (claim?.spec.projectRef.uid !== resource.metadata.uid) return;
    await kube.delete(domainClaimResource, ref, { uid: claim?.metadata.uid });
  } catch {
    throw failures.domainReleasePending();
  }
}

async function deleteResource(project: ApiProject, { kube }: Services): Promise<void> {
  const { namespace, name, uid } = project.resource.metadata;
  try {
    const accepted = await kube.delete(projectResource, { namespace, name }, { uid });
    if (!accepted) throw failures.projectAlreadyDeleted();
  } catch (error) {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  }
}
