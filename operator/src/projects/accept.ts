/** Validation of a project, as far as it is the same for every type. Pure. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import {
  annotations,
  type Catalog,
  findPlan,
  isForeignBuild,
  labels,
  organizationOfNamespace,
  type Project,
  type ProjectPlan,
  type ProjectReason,
} from "@slipway/crds";
import { TerminalError, WaitingError } from "../reconcile-errors.ts";
import { isBuilt } from "./images/built-image.ts";

/** What an accepted project is built from. */
export interface Accepted<P extends ProjectPlan = ProjectPlan> {
  organizationId: string;
  plan: P;
  /** By name of a Secret whose variables refer to other projects, the Secret with their values. */
  resolved?: ReadonlyMap<string, string>;
  /** Other values of variables that projects share are the only reason for another version. */
  valuesOnly?: boolean;
}

/** The rejection of a spec that must change first. */
export const refuse = (reason: ProjectReason, message: string) =>
  new TerminalError(reason, message, { condition: "Accepted" });

/**
 * The organization that a project belongs to.
 * @param namespace the project's namespace, when it is known as an organization's
 * @throws TerminalError or WaitingError about the condition `Accepted`
 */
export function organizationOf(project: Project, namespace: KubernetesObject | undefined): string {
  const organizationId = organizationOfNamespace(project.metadata.namespace ?? "");
  if (organizationId === undefined) {
    throw refuse("NotInOrganizationNamespace", "A project must be in the namespace of an organization.");
  }
  const isProvisioned =
    namespace?.metadata?.labels?.[labels.organization] === organizationId &&
    namespace.metadata.annotations?.[annotations.guarded] !== undefined;
  if (!isProvisioned) {
    throw new WaitingError("NamespaceNotGuarded", "The organization's namespace is not ready yet.", {
      condition: "Accepted",
      requeueAfterMs: 30_000,
    });
  }
  return organizationId;
}

/** @throws TerminalError about the condition `Accepted` when the project is to be built and builds are disabled */
export function refuseUnbuilt(project: Project, builds: boolean): void {
  if (isBuilt(project) && !builds) {
    throw refuse("TypeNotSupported", "This platform builds nothing from Git.");
  }
}

/**
 * @param buildsRegistry `host` or `host:port` of the platform's registry of builds; undefined where nothing is built
 * @throws TerminalError about the condition `Accepted` when the image was built for another organization
 */
export function refuseForeignBuild(
  { spec }: Project,
  organizationId: string,
  buildsRegistry: string | undefined,
): void {
  if (isForeignBuild(spec.image?.url ?? "", organizationId, buildsRegistry)) {
    throw refuse("ImageOfOthers", "The image is in the builds registry and not this organization's.");
  }
}

/**
 * The plan of a project that runs an image, one that is yet to be built too.
 * @param plans those of the project's type
 * @param type what they are for, in words
 * @throws TerminalError about the condition `Accepted`
 */
export function planOfImage<P extends ProjectPlan>(
  project: Project,
  catalog: Catalog,
  { plans, type }: { plans: readonly P[]; type: string },
): P {
  const { spec } = project;
  if (!spec.image && !isBuilt(project)) {
    throw refuse("TypeNotSupported", "The project has no image.");
  }
  const plan = plans.find((one) => one.plan === spec.plan);
  if (!plan) {
    throw findPlan(catalog, spec.plan)
      ? refuse("PlanIncompatible", `The plan ${spec.plan} is not for ${type}.`)
      : refuse("UnknownPlan", `The plan ${spec.plan} is not in the catalog.`);
  }
  return plan;
}

/** How long a new project waits for the API, in milliseconds: it may have crashed. */
const PENDING_MS = 30_000;

/**
 * For how many more milliseconds a new project is not reconciled: the API claims its hostnames, and deletes it when one is
 * claimed already. Otherwise two creations that want the same ones could each get some, and neither all.
 */
export function creationPendingMs({ metadata, spec }: Project, now: Date): number {
  const { creationTimestamp = "", deletionTimestamp } = metadata;
  if (!spec.creationPending || deletionTimestamp !== undefined) {
    return 0;
  }
  return Math.max(0, Date.parse(creationTimestamp) + PENDING_MS - now.getTime()) || 0;
}
