/** The instances that the kubelet has restarted because of a probe. It reports that by an Event alone: a container's status has its exit code. */

import { customResource, type KubernetesObject, type Manager, type Store } from "@slipway/controller-runtime";
import type { ProbeKill } from "../applications/probe-kill.ts";

/** The Event by which the kubelet reports that it ends a container: because of a probe, or for another reason. */
export interface KillEvent extends KubernetesObject {
  involvedObject: { namespace?: string; name?: string; uid?: string };
  message?: string;
  /** RFC 3339, whole seconds. The same kill again is counted in the same Event. */
  lastTimestamp?: string;
  /** Absent for a container that is ended for another reason. */
  probe?: ProbeKill["probe"];
}

/** Of the core group: it supports the field selectors that are needed here. */
const events = customResource("", "v1", "events", "Event");

const BY_POD_UID = "podUid";

/** As the kubelet words it: `computePodActions` in pkg/kubelet/kuberuntime/kuberuntime_manager.go. */
const PROBE_FAILED = /^Container app failed (liveness|startup) probe/;

/** Every kill of which an Event still exists: those of the last hour, on most clusters. */
export function createKillStore(manager: Manager): Store<KillEvent> {
  return manager.store<KillEvent>(events, {
    fieldSelector: "involvedObject.kind=Pod,reason=Killing",
    indexers: {
      [BY_POD_UID]: ({ involvedObject: { uid }, probe }) =>
        uid === undefined || probe === undefined ? [] : [uid],
    },
    transform: slimKill,
  });
}

/** An Event without what nothing reads, and with the probe that its message names. Pure. */
export function slimKill(event: KillEvent): KillEvent {
  const { apiVersion, kind, metadata, involvedObject, message = "", lastTimestamp } = event;
  const { namespace, name, uid } = involvedObject;
  const probe = PROBE_FAILED.exec(message)?.[1] as ProbeKill["probe"] | undefined;
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
    ...(probe === undefined ? {} : { probe, lastTimestamp }),
  };
}

/** The kills of a pod because of a probe. */
export function probeKillsOf(kills: Store<KillEvent>, pod: KubernetesObject): ProbeKill[] {
  return kills
    .byIndex(BY_POD_UID, pod.metadata?.uid ?? "")
    .flatMap(({ probe, lastTimestamp }) =>
      probe === undefined || lastTimestamp === undefined ? [] : [{ probe, at: lastTimestamp }],
    );
}
