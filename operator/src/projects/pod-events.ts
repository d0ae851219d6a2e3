/** Events of pods by which the kubelet reports what no status of a pod shows. */

import { customResource, type KubernetesObject, type Manager, type Store } from "@slipway/controller-runtime";

/** An Event about a pod. */
export interface PodEvent extends KubernetesObject {
  involvedObject: { namespace?: string; name?: string; uid?: string };
}

/** Of the core group: it supports the field selectors that are needed here. */
const events = customResource("", "v1", "events", "Event");

const BY_POD_UID = "podUid";

/**
 * Every Event of a reason that still exists: those of the last hour, on most clusters.
 * @param transform what is kept of each
 */
export function createPodEventStore<E extends PodEvent>(
  manager: Manager,
  reason: "Pulling" | "Killing",
  transform: (event: E) => E,
): Store<E> {
  return manager.store<E>(events, {
    fieldSelector: `involvedObject.kind=Pod,reason=${reason}`,
    indexers: { [BY_POD_UID]: ({ involvedObject: { uid } }) => (uid === undefined ? [] : [uid]) },
    transform,
  });
}

/** An Event without what nothing reads. Pure. */
export function slimPodEvent({ apiVersion, kind, metadata, involvedObject }: PodEvent): PodEvent {
  const { namespace, name, uid } = involvedObject;
  return {
    apiVersion,
    kind,
    metadata: {
      name: metadata?.name,
      namespace: metadata?.namespace,
      uid: metadata?.uid,
      resourceVersion: metadata?.resourceVersion,
    },
    involvedObject: { namespace, name, uid },
  };
}

/** The Events of a pod. */
export const podEventsOf = <E extends PodEvent>(store: Store<E>, pod: KubernetesObject): readonly E[] =>
  store.byIndex(BY_POD_UID, pod.metadata?.uid ?? "");
