/** The NetworkPolicy of a database, and the addresses that it admits. Pure. */

import { isEverybody, type ProjectSpec } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { type AddressRange, parseCidr, subtractCidrs } from "../../net/cidr.ts";
import type { Database, IpBlock } from "../database.ts";
import { metadataOf, podLabels } from "./metadata.ts";

/** Labels of the operator's pods, as the chart sets them. */
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
 * namespace's policies; the rest of the world is denied by them.
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

/**
 * The ranges of the white list, each without what of the black list is in it. Two CIDRs are apart or one is in the other,
 * so nothing else can be. None without a white list: no outside client is admitted then.
 */
export function admittedBlocks(access: ProjectSpec["networkAccess"]): IpBlock[] {
  const black = bothFamilies(access?.ingressBlackList ?? []);
  const white = bothFamilies(access?.ingressWhiteList ?? []);
  return [...new Set(white)].flatMap((cidr) => {
    const range = parseCidr(cidr);
    if (black.some((one) => contains(parseCidr(one), range))) {
      return [];
    }
    const except = [...new Set(black)].filter((one) => contains(range, parseCidr(one)));
    return [{ cidr, ...(except.length > 0 ? { except } : {}) }];
  });
}

/** `0.0.0.0/0` means everybody, of both address families. */
function bothFamilies(list: readonly { cidr: string }[]): string[] {
  return list.flatMap(({ cidr }) => (isEverybody(cidr) ? ["0.0.0.0/0", "::/0"] : [canonical(cidr)]));
}

/** Without host bits, which an apiserver may refuse. */
function canonical(cidr: string): string {
  return subtractCidrs([cidr], [])[0] ?? cidr;
}

function contains(outer: AddressRange, inner: AddressRange): boolean {
  return outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;
}
