import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, isNotFound, type KubeClient } from "@slipway/controller-runtime";
import type { DomainClaim, Project } from "@slipway/crds";
import { hostnamesOf, ownsClaim } from "../../../api-server/src/projects/claims.ts";
import { domainClaimResource, projectResource } from "../../../api-server/src/resources.ts";
import { ZONE } from "./harness.ts";

/** Plays the operator's part in tests without one: deletes claims that their project does not ask for. */
export function startReleaser(kube: KubeClient): { stop: () => Promise<void> } {
  const stopped = new AbortController();
  const run = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      await releaseOnce(kube);
      await sleep(30);
    }
  };
  const running = run();
  return {
    stop: async () => {
      stopped.abort();
      await running;
    },
  };
}

async function releaseOnce(kube: KubeClient): Promise<void> {
  for (const claim of await kube.listAll<DomainClaim>(domainClaimResource)) {
    const project = await kube.getOrUndefined<Project>(projectResource, claim.spec.projectRef);
    if (project && isWanted(claim, project)) {
      continue;
    }
    const { name, uid, resourceVersion } = claim.metadata;
    try {
      await kube.delete(domainClaimResource, { name }, { uid, resourceVersion });
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) {
        throw error;
      }
    }
  }
}

function isWanted(claim: DomainClaim, project: Project): boolean {
  if (!ownsClaim(project, claim)) {
    return false;
  }
  const ahead = claim.spec.reservedFor?.generation ?? 0;
  return (
    ahead > (project.metadata.generation ?? 0) ||
    hostnamesOf(project, ZONE).some(({ hostname }) => hostname === claim.spec.hostname)
  );
}
