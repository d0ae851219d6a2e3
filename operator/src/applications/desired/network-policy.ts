import type { DesiredObject } from "../../desired.ts";
import { activatorPeer } from "../../sleep/desired.ts";
import { childMetadata } from "../../workload/app.ts";
import { type HttpApp, instanceSelector } from "../app.ts";

/**
 * Opens a public project's port to the ingress controller. The organization's namespace denies everything else but its
 * own pods, so a private project needs none.
 */
export function networkPolicy(app: HttpApp): DesiredObject | undefined {
  if (!app.route) {
    return undefined;
  }
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: childMetadata(app),
    spec: {
      podSelector: instanceSelector(app),
      policyTypes: ["Ingress"],
      ingress: [
        {
          from: [
            {
              namespaceSelector: {
                matchLabels: { "kubernetes.io/metadata.name": app.route.ingressNamespace },
              },
            },
            ...activatorPeer(app),
          ],
          ports: [{ port: app.port, protocol: "TCP" }],
        },
      ],
    },
  };
}
