/** Where clients outside the cluster connect. Pure. */

import type { Finding } from "../projects/status.ts";
import type { LiveService } from "./driver.ts";
import type { DatabaseConfig } from "./settings.ts";

export interface Address {
  host: string;
  port: number;
}

/** The address of an outside Service; undefined while it has none, or no host of the nodes is configured. */
export function outsideAddress(
  service: LiveService | undefined,
  { outside }: Pick<DatabaseConfig, "outside">,
): Address | undefined {
  const port = service?.spec?.ports?.[0];
  if (!port) {
    return undefined;
  }
  if (outside.type === "NodePort") {
    return outside.host !== undefined && port.nodePort !== undefined
      ? { host: outside.host, port: port.nodePort }
      : undefined;
  }
  const { ip, hostname } = service?.status?.loadBalancer?.ingress?.[0] ?? {};
  const host = outside.host ?? hostname ?? ip;
  return host !== undefined && (ip ?? hostname) !== undefined ? { host, port: port.port } : undefined;
}

export const ADDRESS_PENDING: Finding = {
  reason: "AddressPending",
  message: "The address outside the cluster is not assigned yet.",
};
