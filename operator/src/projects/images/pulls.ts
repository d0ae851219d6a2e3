/**
 * The pods whose image is being pulled. The kubelet reports a pull by an Event alone: the pod's status is unchanged until
 * the pull has ended.
 */

import type { KubernetesObject, Manager, Store } from "@slipway/controller-runtime";
import { createPodEventStore, type PodEvent, podEventsOf, slimPodEvent } from "../pod-events.ts";

/** The Event by which the kubelet reports that it pulls an image for a pod. */
export type PullEvent = PodEvent;

/** Every pull of which an Event still exists. */
export const createPullStore = (manager: Manager): Store<PullEvent> =>
  createPodEventStore(manager, "Pulling", slimPodEvent);

/** Whether a pull was begun for this pod; its own status shows whether it has ended. */
export const hasBegunToPull = (pulls: Store<PullEvent>, pod: KubernetesObject): boolean =>
  podEventsOf(pulls, pod).length > 0;
