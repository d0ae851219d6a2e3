/** The objects of a project that may sleep, beside those that every project has. */

import { ACTIVATOR, activatorServiceName, annotations, SLEEPS_LABEL } from "@slipway/crds";
import type { HttpApp } from "../applications/app.ts";
import type { DesiredObject } from "../desired.ts";
import { childMetadata } from "../workload/app.ts";

/** Label of slices that the platform makes: those of Kubernetes have another value, though they copy a Service's labels. */
export const SLICE_MANAGER = { "endpointslice.kubernetes.io/managed-by": "slipway" } as const;

/**
 * A Service without instances of its own, which leads to the activator's. It exists while the project may sleep and not only while
 * it does: the ingress learns of Services and routes apart from one another, and would answer 503 in between.
 */
export function activatorService(app: HttpApp): DesiredObject | undefined {
  if (app.sleep === undefined) {
    return undefined;
  }
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...childMetadata(app), name: activatorServiceName(app.id) },
    spec: { type: "ClusterIP", ports: [{ name: "http", port: 80, protocol: "TCP" }] },
  };
}

/**
 * The ingress connects to the addresses as they are: they may be a Service's. The activator knows by it which hosts lead to the project, from the
 * moment on at which they are routed. A slice's family never changes, so each has its own name.
 */
export function activatorEndpoints(app: HttpApp): DesiredObject | undefined {
  if (app.sleep === undefined) {
    return undefined;
  }
  const { addresses } = app.sleep.activator;
  const metadata = childMetadata(app);
  const name = activatorServiceName(app.id);
  const isIPv6 = addresses.some((address) => address.includes(":"));
  const hosts = [app.route?.host, ...(app.route?.customHosts ?? [])].filter((host) => host !== undefined);
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      ...metadata,
      name: isIPv6 ? `${name}-ipv6` : name,
      labels: {
        ...metadata.labels,
        ...SLICE_MANAGER,
        ...sleepLabels(app),
        "kubernetes.io/service-name": name,
      },
      annotations: { [annotations.routedHosts]: hosts.join(",") },
    },
    addressType: isIPv6 ? "IPv6" : "IPv4",
    endpoints: [{ addresses: [...addresses], conditions: { ready: true } }],
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
  };
}

/** Labels of the Service of a project that may sleep. */
export const sleepLabels = ({ sleep }: HttpApp): Record<string, string> =>
  sleep === undefined ? {} : { [SLEEPS_LABEL]: "true" };

/** The activator as a peer of a project's instances. */
export function activatorPeer({ sleep }: HttpApp): object[] {
  return sleep === undefined
    ? []
    : [
        {
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": sleep.activator.namespace } },
          podSelector: { matchLabels: { "app.kubernetes.io/name": ACTIVATOR } },
        },
      ];
}
