import { apiVersionOf, type KubernetesObject, type OwnerReference, type Resource } from "../client/types.ts";
import { hashJson } from "./json.ts";

/** Keys of the annotations that mark an object as applied. */
export interface AppliedAnnotations {
  /** Hash of what was last applied: a child whose hash and fields are right needs no write. */
  readonly appliedHash: string;
  /** Field manager that applied the object: what it did not apply is never pruned. */
  readonly appliedBy: string;
  /** Field manager that created the object, and has not applied it since: it owns its fields by an update. */
  readonly createdBy: string;
}

/** The keys `<prefix>/applied-hash`, `<prefix>/applied-by` and `<prefix>/created-by`. */
export function appliedAnnotations(prefix: string): AppliedAnnotations {
  return {
    appliedHash: `${prefix}/applied-hash`,
    appliedBy: `${prefix}/applied-by`,
    createdBy: `${prefix}/created-by`,
  };
}

/** Who applies: the value of the annotation, and the keys. */
export interface ApplyIdentity {
  readonly fieldManager: string;
  readonly keys: AppliedAnnotations;
}

/** The label by which the children of one owner are found. */
export interface OwnerLabel {
  readonly key: string;
  readonly value: string;
}

/** Whose children are applied. */
export interface Owner {
  label: OwnerLabel;
  /** The controller reference that each child gets; absent for owners that cannot have one (cluster-scoped children). */
  reference?: OwnerReference;
  /** Namespace of the children; absent when they are cluster-scoped or in several. */
  namespace?: string;
}

/**
 * A desired object as it is sent: with the owner's label, the owner reference, the annotations that mark it as applied,
 * without status and without undefined fields. `stringData` of a Secret becomes `data`, since the apiserver keeps only
 * that. Pure.
 */
export function prepare(
  desired: KubernetesObject,
  owner: Owner,
  { fieldManager, keys }: ApplyIdentity,
): KubernetesObject {
  const {
    status: _status,
    stringData,
    ...rest
  } = desired as KubernetesObject & {
    status?: unknown;
    stringData?: Record<string, string>;
    data?: Record<string, string>;
  };
  const data = stringData
    ? Object.fromEntries(
        Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString("base64")]),
      )
    : undefined;
  const object = JSON.parse(
    JSON.stringify({
      ...rest,
      ...(data ? { data: { ...rest.data, ...data } } : {}),
      metadata: {
        ...rest.metadata,
        labels: { ...rest.metadata?.labels, [owner.label.key]: owner.label.value },
        ...(owner.reference ? { ownerReferences: [owner.reference] } : {}),
      },
    }),
  ) as KubernetesObject;
  const hash = hashJson(object);
  const applied = { [keys.appliedBy]: fieldManager, [keys.appliedHash]: hash };
  const annotations = { ...object.metadata?.annotations, ...applied };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** A prepared object as it is created: the first apply removes this mark again, as all that it leaves out. Pure. */
export function asCreated(object: KubernetesObject, { fieldManager, keys }: ApplyIdentity): KubernetesObject {
  const annotations = { ...object.metadata?.annotations, [keys.createdBy]: fieldManager };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Whether the fields of an object are owned as it was created. */
export function isAsCreated({ metadata }: KubernetesObject, { fieldManager, keys }: ApplyIdentity): boolean {
  return metadata?.annotations?.[keys.createdBy] === fieldManager;
}

/** Whether this field manager applied the object for this owner: only then may it be changed or pruned. */
export function isOwnChild(
  object: KubernetesObject,
  owner: Owner,
  { fieldManager, keys }: ApplyIdentity,
): boolean {
  const { annotations, labels, ownerReferences, namespace } = object.metadata ?? {};
  if (annotations?.[keys.appliedBy] !== fieldManager) {
    return false;
  }
  if (labels?.[owner.label.key] !== owner.label.value) {
    return false;
  }
  if (owner.namespace !== undefined && namespace !== undefined && namespace !== owner.namespace) {
    return false;
  }
  // A ReplicaSet copies labels and annotations of its Deployment; its controller distinguishes it.
  const controller = ownerReferences?.find((reference) => reference.controller === true);
  return controller?.uid === owner.reference?.uid;
}

/** The reference that makes `owner` the controller of a child. @throws TypeError when the owner was never stored */
export function controllerReference(owner: KubernetesObject, resource: Resource): OwnerReference {
  const { name, uid } = owner.metadata ?? {};
  if (!name || !uid) {
    throw new TypeError(`${resource.kind} without name and uid cannot own anything`);
  }
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** The controlling owner of an object. */
export function controllerOf(object: KubernetesObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find((reference) => reference.controller === true);
}

/** One of ours that lost its annotations by hand, or one that may be adopted. */
export function mayTakeOver(
  live: KubernetesObject,
  owner: Owner,
  keys: AppliedAnnotations,
  adopt = false,
): boolean {
  const controller = live.metadata?.ownerReferences?.find((reference) => reference.controller === true);
  if (controller) {
    return controller.uid === owner.reference?.uid;
  }
  const appliedBy = live.metadata?.annotations?.[keys.appliedBy];
  const labelled = live.metadata?.labels?.[owner.label.key] === owner.label.value;
  return labelled || (adopt && appliedBy === undefined);
}

/** Identifies a child among those of all kinds. */
export function childKey(resource: Resource, object: KubernetesObject): string {
  return `${resource.plural}.${resource.group}/${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}`;
}

/** The object, to be written over this version of the live one and no other. */
export function asRead(object: KubernetesObject, live: KubernetesObject): KubernetesObject {
  const { uid, resourceVersion } = live.metadata ?? {};
  return { ...object, metadata: { ...object.metadata, uid, resourceVersion } };
}
