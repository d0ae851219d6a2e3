/** What is kept of a deleted project, and what is created from it again. Pure. */

import { createHash } from "node:crypto";
import { controllerReference, type KubernetesObject, recreatedService } from "@slipway/controller-runtime";
import {
  annotations,
  DELETED_PROJECT_STATE,
  DELETED_PROJECTS_KEPT,
  type DeletedProject,
  type DeletedProjectSpec,
  deletedProjectName,
  finalizers,
  isInstanceType,
  labels,
  MANAGED_BY,
  type Project,
  specOfRecreated,
  statusOfRecreated,
} from "@slipway/crds";
import { projectResource } from "../resources.ts";

export interface Secret extends KubernetesObject {
  type?: string;
  immutable?: boolean;
  data?: Record<string, string>;
}

export interface Claim extends KubernetesObject {
  spec?: { volumeName?: string; resources?: { requests?: { storage?: string } } };
  status?: { phase?: string };
}

/** What of a project is neither a Secret nor a volume. */
export interface KeptState {
  project: Project;
  /** The address of a database outside the cluster: clients know its port of the nodes. */
  services: KubernetesObject[];
  /** State that Patroni keeps there. */
  configMaps: KubernetesObject[];
  claims: Claim[];
}

const HOUR_MS = 3_600_000;

/** Name of the record that a project's volumes are retained for: of one whose undelete has not ended, still the one that it comes from. */
export function recordNameOf({ metadata }: Project): string {
  return (
    metadata.annotations?.[annotations.undeletedFrom] ?? deletedProjectName(metadata.name, metadata.uid ?? "")
  );
}

/** Whether a project is being undeleted, so that nothing else may be made of it. */
export const isBeingUndeleted = ({ metadata }: Project): boolean =>
  metadata.annotations?.[annotations.undeletedFrom] !== undefined;

/** The record of a deleted project. */
export function recordOf(
  project: Project,
  volumes: DeletedProjectSpec["volumes"],
  { now, hours }: { now: Date; hours: number },
): DeletedProject {
  const { name, namespace, uid = "", deletionTimestamp } = project.metadata;
  const organization = project.metadata.labels?.[labels.organization];
  return {
    apiVersion: project.apiVersion,
    kind: "DeletedProject",
    metadata: {
      name: recordNameOf(project),
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        ...(organization === undefined ? {} : { [labels.organization]: organization }),
      },
      finalizers: [finalizers.deletedProject],
    },
    spec: {
      projectRef: { name, uid },
      displayName: project.spec.name,
      type: project.spec.type,
      plan: project.spec.plan,
      deletedAt: deletionTimestamp ?? now.toISOString(),
      expiresAt: new Date(now.getTime() + hours * HOUR_MS).toISOString(),
      volumes,
    },
  };
}

/** Those that expire early, so that there is room for one more: the oldest. */
export function beyondLimit(
  records: readonly DeletedProject[],
  kept = DELETED_PROJECTS_KEPT,
): DeletedProject[] {
  const oldestFirst = records
    .filter(({ metadata, spec }) => !metadata.deletionTimestamp && spec.undeleteRequestedAt === undefined)
    .toSorted((a, b) => Date.parse(a.spec.deletedAt) - Date.parse(b.spec.deletedAt));
  return oldestFirst.slice(0, Math.max(0, oldestFirst.length - kept + 1));
}

/** The Secret with the state: a spec names private things, such as repositories, though no password. */
export function stateSecret(record: string, state: KeptState): Secret {
  const { namespace } = state.project.metadata;
  return {
    metadata: { name: record, namespace, labels: recordLabels(record) },
    type: "Opaque",
    data: { [DELETED_PROJECT_STATE]: Buffer.from(JSON.stringify(trimmed(state))).toString("base64") },
  };
}

const recordLabels = (record: string) => ({
  [labels.managedBy]: MANAGED_BY,
  [labels.deletedProject]: record,
});

/** Without what only the apiserver may set, and what says who wrote it. */
function trimmed({ project, services, configMaps, claims }: KeptState): KeptState {
  const { name, namespace, uid, labels: own, annotations: notes } = project.metadata;
  const metadata = { name, namespace, uid, labels: own, annotations: notes };
  return {
    project: { ...project, metadata },
    services: services.map((service) => recreatedService({ ...service, metadata: ownMetadata(service) })),
    configMaps: configMaps.map((one) => ({ ...one, metadata: ownMetadata(one) })),
    claims: claims.map(({ metadata: _, status: __, ...claim }, index) => ({
      ...claim,
      metadata: ownMetadata(claims[index] as Claim),
    })),
  };
}

/** Of what Kubernetes or the applier has noted on an object, nothing. */
const FOREIGN = /^([a-z.]*\.)?kubernetes\.io\/|^slipway\.dev\/(applied-|created-by)/;

function ownMetadata({ metadata }: KubernetesObject): NonNullable<KubernetesObject["metadata"]> {
  const { name, namespace, labels: own, annotations: notes = {} } = metadata ?? {};
  const kept = Object.fromEntries(Object.entries(notes).filter(([key]) => !FOREIGN.test(key)));
  return { name, namespace, labels: own, annotations: kept };
}

/** Where a copied Secret has its name, and its own labels and annotations. */
const ORIGINAL = "slipway.dev/original";

/** A Secret of the project, as it is kept under the record. */
export function keptSecret(record: string, secret: Secret): Secret {
  const { type, immutable, data = {} } = secret;
  const original = ownMetadata(secret);
  const digest = createHash("sha256")
    .update(original.name ?? "")
    .digest("hex")
    .slice(0, 12);
  return {
    metadata: {
      name: `${record}-${digest}`,
      namespace: original.namespace,
      labels: recordLabels(record),
      annotations: {
        [ORIGINAL]: JSON.stringify({
          name: original.name,
          labels: original.labels,
          annotations: original.annotations,
        }),
      },
    },
    type,
    ...(immutable ? { immutable } : {}),
    data,
  };
}

/** The same as the new project has it; undefined for the Secret with the state. */
export function restoredSecret(kept: Secret, project: Project): Secret | undefined {
  const original = kept.metadata?.annotations?.[ORIGINAL];
  if (original === undefined) {
    return undefined;
  }
  const { type, immutable, data } = kept;
  const metadata = { ...JSON.parse(original), namespace: project.metadata.namespace, ...owned(project) };
  return { metadata, type, ...(immutable ? { immutable } : {}), data };
}

const owned = (project: Project) => ({ ownerReferences: [controllerReference(project, projectResource)] });

/** An object of the state as the new project has it. */
export const restoredChild = <T extends KubernetesObject>(object: T, project: Project): T => ({
  ...object,
  metadata: { ...object.metadata, ...owned(project) },
});

/** A claim that is bound to the retained volume, and to no other. Those of a StatefulSet have no owner. */
export function restoredClaim(claim: Claim, project: Project): Claim {
  return isInstanceType(project.spec.type) ? restoredChild(claim, project) : claim;
}

/** The Project, not to be reconciled yet. Its status is written apart. */
export function restoredProject({ project }: KeptState, record: string): Project {
  const { name, namespace, labels: own, annotations: notes } = project.metadata;
  const { creationPending: _, ...spec } = specOfRecreated(project.spec);
  const { [annotations.traceparent]: __, ...kept } = notes ?? {};
  return {
    apiVersion: project.apiVersion,
    kind: "Project",
    metadata: {
      name,
      namespace,
      labels: own,
      annotations: { ...kept, [annotations.undeletedFrom]: record },
      finalizers: [finalizers.project],
    },
    spec,
  };
}

export const restoredStatus = ({ project }: KeptState): NonNullable<Project["status"]> =>
  statusOfRecreated(project.status ?? {});
