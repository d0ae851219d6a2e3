/** The controller of claims: says how each stands, and frees the hostnames of projects that are gone. */

import { type DomainClaim, fieldManagers, type Project } from "@slipway/crds";
import type { PolicyRule } from "../rbac.ts";
import { domainClaimResource } from "../resources.ts";
import {
  type ConditionSet,
  type Controller,
  type Manager,
  objectReconciler,
  watchMapped,
  watchObjects,
} from "../runtime/index.ts";
import { BY_PROJECT_UID } from "./claims.ts";
import { type ReaperDependencies, reap } from "./reaper.ts";

/** Permissions of the controller; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["get", "list", "watch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["domainclaims/status"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] },
];

/** Adds it to a manager. */
export function addDomainClaimController(
  manager: Manager,
  { claims, projects }: Pick<ReaperDependencies, "claims" | "projects">,
): Controller {
  const { client, clock, recorder } = manager;
  const tell = objectReconciler<DomainClaim>({
    client,
    clock,
    recorder,
    store: claims,
    resource: domainClaimResource,
    fieldManager: fieldManagers.domainClaim,
    reconcile: async (claim, { conditions, status }) => {
      const { namespace, name } = claim.spec.projectRef;
      tellClaim(claim, projects.get(namespace, name), conditions);
      status.verifiedBy = "zone";
      return undefined;
    },
  });
  return manager.addController({
    name: "domainclaim",
    reconcile: async (ref, context) => {
      const leaving = await reap(ref, { client, claims, projects }, context);
      return leaving ? undefined : tell(ref, context);
    },
    sources: [
      watchObjects(claims),
      watchMapped(projects, ({ metadata }) =>
        claims.byIndex(BY_PROJECT_UID, metadata.uid ?? "").map((claim) => ({ name: claim.metadata.name })),
      ),
    ],
    workers: 2,
  });
}

/** The platform's own zone needs no proof of ownership; a claim is routed when its project says so. */
export function tellClaim(claim: DomainClaim, project: Project | undefined, conditions: ConditionSet): void {
  const routed =
    project?.status?.domain === claim.spec.hostname &&
    project.status.conditions?.some(({ type, status }) => type === "DomainReady" && status === "True") ===
      true;
  conditions.set({ type: "Verified", status: "True", reason: "PlatformZone" });
  if (routed) {
    conditions.set({ type: "Routed", status: "True", reason: "Routed" });
    conditions.set({ type: "Ready", status: "True", reason: "Ready" });
  } else {
    const pending = { reason: "RoutePending", message: "The project's route is not in place yet." };
    conditions.set({ type: "Routed", status: "False", ...pending });
    conditions.set({ type: "Ready", status: "False", ...pending });
  }
}
