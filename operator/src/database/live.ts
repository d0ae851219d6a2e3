/** A database as the watches told it. */

import { databaseNames, labels, type Project } from "@slipway/crds";
import { type KubernetesObject, resources } from "@slipway/kube";
import { childOf, childrenOf, type ProjectStores } from "../project/stores.ts";
import { controllerOf } from "../runtime/index.ts";
import { ordinalOf } from "./common/pods.ts";
import type { LiveClaim, LiveDatabase, LivePod, LiveService, LiveStatefulSet } from "./engine.ts";

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
    claims: childrenOf<LiveClaim>(stores, resources.persistentVolumeClaims, project)
      .filter(({ metadata }) => isMember(metadata?.name?.replace(/^data-/, ""), id))
      .toSorted((a, b) => ordinalOf(a) - ordinalOf(b)),
    outside: own(outside),
  };
}

/** Pods of the StatefulSet alone: others, such as those that make backups, carry the project's label, too. */
function isMember(name: string | undefined, id: string): boolean {
  return name?.startsWith(`${id}-`) === true && /^[0-9]+$/.test(name.slice(id.length + 1));
}
