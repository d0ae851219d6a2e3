/** Objects in the namespace of builds beside the pods: its network policy, and the projects' caches. Pure. */

import { type Build, labels, MANAGED_BY } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { outsideWorld } from "../../organizations/cluster-addresses.ts";
import { CACHE_LABEL, organizationOfBuild } from "../names.ts";
import type { BuildSettings } from "../settings.ts";

/**
 * Builds run tenants' code: they reach DNS, the outside world without the ranges that tenants are denied, and the few internal
 * addresses that builds need. Nothing can connect to them, nor they to each other.
 */
export function buildsPolicy({ namespace, network }: BuildSettings): DesiredObject {
  const { dnsNamespace, deniedCidrs, opened } = network;
  const world = outsideWorld(deniedCidrs).map((ipBlock) => ({ ipBlock }));
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "slipway-builds", namespace, labels: { [labels.managedBy]: MANAGED_BY } },
    spec: {
      podSelector: {},
      policyTypes: ["Ingress", "Egress"],
      ingress: [],
      egress: [
        {
          to: [
            {
              namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": dnsNamespace } },
              podSelector: { matchLabels: { "k8s-app": "kube-dns" } },
            },
          ],
          ports: [
            { port: 53, protocol: "UDP" },
            { port: 53, protocol: "TCP" },
          ],
        },
        // A rule without peers would allow everything.
        ...(world.length === 0 ? [] : [{ to: world }]),
        ...opened.map(({ address, port }) => ({
          to: [{ ipBlock: { cidr: `${address}/${address.includes(":") ? 128 : 32}` } }],
          ports: [{ port, protocol: "TCP" }],
        })),
      ],
    },
  };
}

/** Claim of a project's cache: layers and package managers' downloads outlive the build. */
export function cacheClaim(build: Build, name: string, { namespace, cache }: BuildSettings): DesiredObject {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name,
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationOfBuild(build),
        [CACHE_LABEL]: name,
      },
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: cache.size } },
      ...(cache.storageClass === "" ? {} : { storageClassName: cache.storageClass }),
    },
  };
}
