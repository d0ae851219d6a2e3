/** Lets pods of backups reach a store whose addresses tenants are otherwise denied. Pure. */

import { labels } from "@slipway/crds";
import type { DesiredObject } from "../desired.ts";
import { workLabels } from "./names.ts";
import type { BackupSettings } from "./settings.ts";

/** No project's id begins so. */
const NAME = "slipway-backups";

/** Undefined where the namespace's own guards are enough: the store is in the outside world. */
export function storePolicy(namespace: string, { s3 }: BackupSettings): DesiredObject | undefined {
  const { cidrs = [], port = 443, earlier = [] } = s3?.networkPolicy ?? {};
  // One policy for all Jobs of the namespace: one may read from an earlier store while another writes to today's.
  const stores = [{ cidrs, port }, ...earlier].filter((store) => store.cidrs.length > 0);
  if (stores.length === 0) {
    return undefined;
  }
  const { [labels.backup]: _, ...own } = workLabels("", namespace);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: NAME, namespace, labels: own },
    spec: {
      podSelector: { matchExpressions: [{ key: labels.backup, operator: "Exists" }] },
      policyTypes: ["Egress"],
      egress: stores.map((store) => ({
        to: store.cidrs.map((cidr) => ({ ipBlock: { cidr } })),
        ports: [{ port: store.port, protocol: "TCP" }],
      })),
    },
  };
}
