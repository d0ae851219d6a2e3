/** A database as the watches show it. */

import { controllerOf, type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { databaseNames, labels, type Project } from "@slipway/crds";
import { childOf, childrenOf, type ProjectStores } from "../projects/stores.ts";
import { ordinalOf } from "./common/pods.ts";
import type { LiveClaim, LiveDatabase, LivePod, LiveService, LiveStatefulSet } from "./driver.ts";
import type { DatabaseConfig } from "./settings.ts";

/** Where clients outside the cluster connect. */
export interface Address {
  host: string;
  port: number;
}

export function readDatabase(project: Project, stores: ProjectStores): LiveDatabase {
  const { namespace, name: id } = project.metadata;
  const own = <T extends KubernetesObject>(object: T | undefined) =>
    object && controllerOf(object)?.uid === project.metadata.uid ? object : undefined;
  const services = childrenOf<LiveService>(stores, resources.services, project);
  const outside = services.find(({ metadata }) => metadata?.name === databaseNames(id).outside);
  return {
    statefulSet: own(childOf<LiveStatefulSet>(stores, resources.statefulSets, project)),
    pods: (stores.pods.byIndex(labels.project, id) as LivePod[])
      .filter(({ metadata }) => metadata.namespace === namespace && isMember(metadata.name, id))
      .toSorted((a, b) => ordinalOf(a) - ordinalOf(b)),
    claims: claimsOf(project, childrenOf<LiveClaim>(stores, resources.persistentVolumeClaims, project)),
    outside: own(outside),
  };
}

/**
 * The same with the claims as the apiserver has them, where no member is meant to run yet: one that was not seen might have
 * the newest data.
 */
export async function readBeforeStart(
  project: Project,
  { client, stores }: { client: KubeClient; stores: ProjectStores },
  signal: AbortSignal,
): Promise<LiveDatabase> {
  const live = readDatabase(project, stores);
  const { namespace, name } = project.metadata;
  if (project.spec.paused || (live.statefulSet?.spec?.replicas ?? 0) > 0) {
    return live;
  }
  const options = { namespace, labelSelector: `${labels.project}=${name}`, signal };
  const claims = await client.listAll<LiveClaim>(resources.persistentVolumeClaims, options);
  return { ...live, claims: claimsOf(project, claims) };
}

function claimsOf({ metadata }: Project, claims: readonly LiveClaim[]): LiveClaim[] {
  return claims
    .filter((claim) => isMember(claim.metadata?.name?.replace(/^data-/, ""), metadata.name))
    .toSorted((a, b) => ordinalOf(a) - ordinalOf(b));
}

/** Pods of the StatefulSet alone: others, such as those that make backups, carry the project's label, too. */
function isMember(name: string | undefined, id: string): boolean {
  return name?.startsWith(`${id}-`) === true && /^[0-9]+$/.test(name.slice(id.length + 1));
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
