import { addresses, nodePortRange, ports } from "./addresses.ts";

/** Name of the nftables table that keeps the cluster closed to the machine's other networks. */
export const guardTable = "slipway_guard";

/**
 * nftables rules that close the cluster to everything outside the machine: its components listen on all
 * addresses, since both 127.0.0.1 and the node's must answer, and forwarding would route a neighbour's packets
 * to pods and Services. Node ports alone stay open: databases are reached there by whom their lists admit, which the
 * network policies' enforcer sees to. The registry accepts pushes without a password, so pods may not reach it
 * either; that of builds requires tokens.
 * Loading the text twice changes nothing.
 */
export function guardRules(): string {
  const closed = Object.values(ports).join(", ");
  return `table inet ${guardTable}
delete table inet ${guardTable}
table inet ${guardTable} {
  chain input {
    type filter hook input priority -150; policy accept;
    iifname "lo" accept
    tcp dport ${ports.registry} drop
    iifname "${addresses.bridge}" accept
    tcp dport { ${closed} } drop
  }
  chain prerouting {
    type filter hook prerouting priority -150; policy accept;
    iifname { "lo", "${addresses.bridge}" } accept
    ip daddr ${addresses.node} tcp dport ${nodePortRange} accept
    ip daddr { ${addresses.podCidr}, ${addresses.serviceCidr} } ct state new drop
  }
}
`;
}
