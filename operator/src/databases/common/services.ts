/** The Services of a database. Pure. */

import type { DesiredObject } from "../../desired.ts";
import type { Database } from "../database.ts";
import { metadataOf, podLabels, type Role, roles } from "./metadata.ts";

/** A port that pods of a database serve. */
export interface NamedPort {
  /** Name of the container's port. */
  name: string;
  port: number;
}

/**
 * Gives each pod a name of its own, from the moment it has an address: members find each other before they are ready.
 * @param name the Service's, where the pods are others than the instances
 */
export function headlessService(
  database: Database,
  ports: readonly NamedPort[],
  { name, selector }: { name: string; selector: Record<string, string> } = {
    name: database.names.nodes,
    selector: podLabels(database),
  },
): DesiredObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadataOf(database, name),
    spec: {
      type: "ClusterIP",
      clusterIP: "None",
      publishNotReadyAddresses: true,
      selector,
      ports: ports.map(servicePort),
    },
  };
}

/**
 * The address inside the organization: of the primary, or of the pods with another role.
 * @param name the Service's
 */
export function roleService(
  database: Database,
  name: string,
  role: Role,
  ports: readonly NamedPort[],
): DesiredObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadataOf(database, name),
    spec: { type: "ClusterIP", selector: podLabels(database, role), ports: ports.map(servicePort) },
  };
}

/**
 * The address outside the cluster, of the primary; none where no outside client is admitted. Connections come from the
 * node's own address unless they stay on the node, and the lists are about clients' addresses: hence `Local`.
 */
export function outsideService(database: Database, ports: readonly NamedPort[]): DesiredObject | undefined {
  if (!database.outside) {
    return undefined;
  }
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadataOf(database, database.names.outside),
    spec: {
      type: database.outside.type,
      externalTrafficPolicy: "Local",
      selector: podLabels(database, roles.primary),
      ports: ports.map(servicePort),
    },
  };
}

export function servicePort({ name, port }: NamedPort) {
  return { name, port, targetPort: name, protocol: "TCP" };
}
