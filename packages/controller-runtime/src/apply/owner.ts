import { apiVersionOf, type KubernetesObject, type OwnerReference, type Resource } from "../client/types.ts";

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
