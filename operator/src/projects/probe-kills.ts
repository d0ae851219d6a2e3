/** The instances that the kubelet has restarted because of a probe. It reports that by an Event alone: a container's status has its exit code. */

import type { KubernetesObject, Manager, Store } from "@slipway/controller-runtime";
import type { ProbeKill } from "../applications/probe-kill.ts";
import { createPodEventStore, type PodEvent, podEventsOf, slimPodEvent } from "./pod-events.ts";

/** The Event by which the kubelet reports that it ends a container: because of a probe, or for another reason. */
export interface KillEvent extends PodEvent {
  message?: string;
  /** RFC 3339, whole seconds. The same kill again is counted in the same Event. */
  lastTimestamp?: string;
  /** Absent for a container that is ended for another reason. */
  probe?: ProbeKill["probe"];
}

/** As the kubelet words it: `computePodActions` in pkg/kubelet/kuberuntime/kuberuntime_manager.go. */
const PROBE_FAILED = /^Container app failed (liveness|startup) probe/;

/** Every kill of which an Event still exists. */
export const createKillStore = (manager: Manager): Store<KillEvent> =>
  createPodEventStore(manager, "Killing", slimKill);

/** An Event without what nothing reads, and with the probe that its message names. Pure. */
export function slimKill(event: KillEvent): KillEvent {
  const { message = "", lastTimestamp } = event;
  const probe = PROBE_FAILED.exec(message)?.[1] as ProbeKill["probe"] | undefined;
  return { ...slimPodEvent(event), ...(probe === undefined ? {} : { probe, lastTimestamp }) };
}

/** The kills of a pod because of a probe. */
export const probeKillsOf = (kills: Store<KillEvent>, pod: KubernetesObject): ProbeKill[] =>
  podEventsOf(kills, pod).flatMap(({ probe, lastTimestamp }) =>
    probe === undefined || lastTimestamp === undefined ? [] : [{ probe, at: lastTimestamp }],
  );
