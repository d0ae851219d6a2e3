import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, organizationNamespace } from "@slipway/crds";

/** The live namespace of an organization, or undefined when there is none. */
export function readNamespace(
  kube: KubeClient,
  organizationId: string,
): Promise<KubernetesObject | undefined> {
  return kube.getOrUndefined(resources.namespaces, { name: organizationNamespace(organizationId) });
}

/** Whether projects can be created in it: it exists, is not being deleted, and the operator has applied all its policies. */
export function isProvisioned(namespace: KubernetesObject | undefined): boolean {
  return (
    namespace?.metadata !== undefined &&
    namespace.metadata.deletionTimestamp === undefined &&
    namespace.metadata.annotations?.[annotations.guarded] !== undefined
  );
}
