import type { DesiredObject } from "../../desired.ts";
import type { Database } from "../database.ts";
import { metadataOf, podLabels } from "./metadata.ts";

/** Labels of the operator's pods, as the chart makes them. */
const OPERATOR = { "app.kubernetes.io/name": "slipway-operator" };

export interface PolicyPorts {
  /** What clients connect to. */
  clients: readonly number[];
  /** What the operator connects to beside it. */
  operator?: readonly number[];
  /** Whether the pods themselves speak to the apiserver. */
  apiserver?: boolean;
}

/**
 * Opens a database to the addresses that its lists admit, and to the operator. The organization's own pods reach it by the
 * namespace's guards; the rest of the world is denied by them.
 */
export function networkPolicy(database: Database, ports: PolicyPorts): DesiredObject {
  const { admitted, systemNamespace } = database;
  const operator = {
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": systemNamespace } },
    podSelector: { matchLabels: OPERATOR },
  };
  const egress = ports.apiserver ? toApiserver(database) : [];
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: metadataOf(database, database.names.main),
    spec: {
      podSelector: { matchLabels: podLabels(database) },
      policyTypes: egress.length > 0 ? ["Ingress", "Egress"] : ["Ingress"],
      ingress: [
        { from: [operator], ports: [...ports.clients, ...(ports.operator ?? [])].map(tcp) },
        // A rule without peers would admit everybody.
        ...(admitted.length > 0
          ? [{ from: admitted.map((ipBlock) => ({ ipBlock })), ports: ports.clients.map(tcp) }]
          : []),
      ],
      ...(egress.length > 0 ? { egress } : {}),
    },
  };
}

/** Its addresses alone, each at its own ports. */
function toApiserver({ apiserver }: Database) {
  return apiserver.map(({ cidrs, ports }) => ({
    to: cidrs.map((cidr) => ({ ipBlock: { cidr } })),
    ports: ports.map(tcp),
  }));
}

const tcp = (port: number) => ({ port, protocol: "TCP" });
