/**
 * The pods whose image is being pulled. The kubelet reports a pull by an Event alone: the pod's status is unchanged until
 * the pull has ended.
 */

import { customResource, type KubernetesObject, type Manager, type Store } from "@slipway/controller-runtime";

/** The Event by which the kubelet reports that it pulls an image for a pod. */
export interface PullEvent extends KubernetesObject {
  involvedObject: { namespace?: string; name?: string; uid?: string };
}

/** Of the core group: it supports the field selectors that are needed here. */
const events = customResource("", "v1", "events", "Event");

/** Index of Events by the uid of their pod. */
const BY_POD_UID = "podUid";

/** Every pull of which an Event still exists: those of the last hour, on most clusters. */
export function createPullStore(manager: Manager): Store<PullEvent> {
  return manager.store<PullEvent>(events, {
    fieldSelector: "involvedObject.kind=Pod,reason=Pulling",
    indexers: { [BY_POD_UID]: ({ involvedObject: { uid } }) => (uid === undefined ? [] : [uid]) },
    transform: ({ apiVersion, kind, metadata, involvedObject: { namespace, name, uid } }) => ({
      apiVersion,
      kind,
      metadata: {
        name: metadata?.name,
        namespace: metadata?.namespace,
        uid: metadata?.uid,
        resourceVersion: metadata?.resourceVersion,
      },
      involvedObject: { namespace, name, uid },
    }),
  });
}

/** Whether a pull was begun for this pod; its own status shows whether it has ended. */
export function hasBegunToPull(pulls: Store<PullEvent>, pod: KubernetesObject): boolean {
  return pulls.byIndex(BY_POD_UID, pod.metadata?.uid ?? "").length > 0;
}
