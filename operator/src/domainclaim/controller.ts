/** The controller that frees the hostnames of projects that are gone. */

import { type Controller, type Manager, watchMapped, watchObjects } from "../runtime/index.ts";
import { BY_PROJECT_UID } from "./claims.ts";
import { type ReaperDependencies, reap } from "./reaper.ts";

/** Adds it to a manager. */
export function addDomainClaimController(
  manager: Manager,
  { claims, projects }: Pick<ReaperDependencies, "claims" | "projects">,
): Controller {
  const { client } = manager;
  return manager.addController({
    name: "domainclaim",
    reconcile: (ref, context) => reap(ref, { client, claims, projects }, context),
    sources: [
      watchObjects(claims),
      watchMapped(
        projects,
        ({ metadata }) =>
          claims.byIndex(BY_PROJECT_UID, metadata.uid ?? "").map((claim) => ({ name: claim.metadata.name })),
        ({ type }) => type === "delete",
      ),
    ],
    workers: 2,
  });
}
