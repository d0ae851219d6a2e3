/** Projects by the hostnames that lead to them, and the addresses of their instances. Pure but for its maps. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { annotations, labels, organizationOfNamespace, type Project } from "@slipway/crds";
import { SLICE_MANAGER } from "../desired.ts";

/** A project as the activator has it. */
export interface SleepingProject {
  namespace: string;
  id: string;
  uid: string;
  organization: string;
  /** The sleep that it is in; undefined while it runs. */
  sleepId?: string;
  /** It is falling asleep: its instances still run, and may be stopped. */
  isEntering?: boolean;
  /** The sleep that was last asked to end. */
  wakeRequested?: string;
}

export interface EndpointSlice extends KubernetesObject {
  endpoints?: readonly { addresses?: readonly string[]; conditions?: { ready?: boolean } }[];
  ports?: readonly { name?: string; port?: number }[];
}

export interface Address {
  host: string;
  port: number;
}

const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
/** Who makes the slices of Services with a selector: no other slice is of instances. */
const SLICE_CONTROLLER = "endpointslice-controller.k8s.io";

/** Undefined for what has no public address: the activator answers for none but what the ingress routes. */
export function sleepingProject({ metadata, spec, status }: Project): SleepingProject | undefined {
  const { name: id, namespace = "", uid = "" } = metadata;
  const organization = organizationOfNamespace(namespace);
  if (organization === undefined || spec.type !== "http" || spec.exposure !== "public" || !status) {
    return undefined;
  }
  return {
    ...{ namespace, id, uid, organization },
    sleepId: status.sleep?.id,
    isEntering: status.sleep?.phase === "entering",
    wakeRequested: metadata.annotations?.[annotations.wakeRequested],
  };
}

/** The hostname of a `Host` header: without port, in lower case; empty when it is none. */
export function hostnameOf(host: string | undefined): string {
  return /^([a-z0-9._-]{1,253}?)\.?(?::[0-9]{1,5})?$/.exec((host ?? "").toLowerCase())?.[1] ?? "";
}

/** The hosts that the operator routes to a project, and their project's id; undefined of any other slice. */
export function routedHosts({
  metadata,
}: EndpointSlice): { id: string; hosts: readonly string[] } | undefined {
  const { labels: own = {}, annotations: noted = {} } = metadata ?? {};
  const id = own[labels.project];
  return own[MANAGED_BY_LABEL] === SLICE_MANAGER[MANAGED_BY_LABEL] && id !== undefined
    ? { id, hosts: (noted[annotations.routedHosts] ?? "").split(",").filter((host) => host !== "") }
    : undefined;
}

/** Addresses of instances that are ready, in a slice of a project's own Service. */
export function readyAddresses({ metadata, endpoints, ports }: EndpointSlice): Address[] {
  if (metadata?.labels?.[MANAGED_BY_LABEL] !== SLICE_CONTROLLER) {
    return [];
  }
  const port = ports?.find(({ name }) => name === "http")?.port;
  return port === undefined
    ? []
    : (endpoints ?? [])
        .filter(({ conditions }) => conditions?.ready === true)
        .flatMap(({ addresses = [] }) => addresses.map((host) => ({ host, port })));
}
