/** Whether a project can be carried out here at all. Pure. */

import {
  annotations,
  type Catalog,
  findHttpPlan,
  findPlan,
  type HttpPlan,
  isOpenAccess,
  labels,
  organizationOfNamespace,
  type Project,
  type ProjectReason,
} from "@slipway/crds";
import type { KubernetesObject } from "@slipway/kube";
import { TerminalError, WaitingError } from "../runtime/index.ts";
import type { AllowList } from "./http/access.ts";

/** What an accepted project is built from. */
export interface Accepted {
  organizationId: string;
  plan: HttpPlan;
}

const refuse = (reason: ProjectReason, message: string) =>
  new TerminalError(reason, message, { condition: "Accepted" });

/**
 * @param namespace the project's namespace, when it is known as an organization's
 * @throws TerminalError or WaitingError about the condition `Accepted`
 */
export function accept(
  project: Project,
  namespace: KubernetesObject | undefined,
  catalog: Catalog,
  ingress: { allowList: AllowList },
): Accepted {
  const organizationId = organizationOf(project, namespace);
  const { spec } = project;
  if (spec.type !== "http") {
    throw refuse("TypeNotSupported", `Projects of type ${spec.type} are not supported yet.`);
  }
  if (!spec.image) {
    throw refuse("TypeNotSupported", "Projects that are built from Git are not supported yet.");
  }
  const plan = findHttpPlan(catalog, spec.plan);
  if (!plan) {
    throw findPlan(catalog, spec.plan)
      ? refuse("PlanIncompatible", `The plan ${spec.plan} is not for HTTP projects.`)
      : refuse("UnknownPlan", `The plan ${spec.plan} is not in the catalog.`);
  }
  checkFeatures(project, plan);
  if (ingress.allowList === "none" && spec.exposure === "public" && !isOpenAccess(spec.networkAccess)) {
    throw refuse("FeatureNotSupported", "The ingress of this platform enforces no access lists.");
  }
  return { organizationId, plan };
}

function organizationOf(project: Project, namespace: KubernetesObject | undefined): string {
  const organizationId = organizationOfNamespace(project.metadata.namespace ?? "");
  if (organizationId === undefined) {
    throw refuse("NotInOrganizationNamespace", "A project must be in the namespace of an organization.");
  }
  const guarded =
    namespace?.metadata?.labels?.[labels.organization] === organizationId &&
    namespace.metadata.annotations?.[annotations.guarded] !== undefined;
  if (!guarded) {
    throw new WaitingError("NamespaceNotGuarded", "The organization's namespace is not ready yet.", {
      condition: "Accepted",
      requeueAfterMs: 30_000,
    });
  }
  return organizationId;
}

function checkFeatures({ spec }: Project, { plan, capabilities, maxInstances }: HttpPlan): void {
  const lacks = (what: string) => refuse("FeatureNotInPlan", `The plan ${plan} has no ${what}.`);
  if (spec.healthcheck?.enabled && !capabilities.healthcheck) {
    throw lacks("health check");
  }
  if (spec.autoscaling?.enabled && !capabilities.autoscaling) {
    throw lacks("autoscaling");
  }
  const most = Math.max(spec.instances ?? 1, spec.autoscaling?.enabled ? spec.autoscaling.maxInstances : 0);
  if (most > maxInstances) {
    throw refuse("FeatureNotInPlan", `The plan ${plan} has at most ${maxInstances} instances.`);
  }
  if (!isOpenAccess(spec.networkAccess) && !capabilities.network_access) {
    throw lacks("access lists");
  }
}
