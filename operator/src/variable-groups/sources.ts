/** What wakes the projects that share variables: nothing polls. */

import {
  equalJson,
  type KubernetesObject,
  type ObjectRef,
  type Source,
  type Store,
  type StoreEvent,
  watchMapped,
} from "@slipway/controller-runtime";
import type { Project, VariableGroup } from "@slipway/crds";
import { foreignSecrets, groupsOf, isQueued, variablesReady } from "./shared.ts";

/** Index of projects by the groups that they attach, as `namespace/name`. */
const BY_GROUP = "variableGroup";
/** Index of projects by the Secrets of others that they name, and of groups by that of their variables, as `namespace/name`. */
const BY_SECRET = "sharedSecret";

const inNamespaceOf = ({ metadata }: { metadata: { namespace?: string } }, names: readonly string[]) =>
  names.map((name) => `${metadata.namespace}/${name}`);

export const sharedIndexers = {
  [BY_GROUP]: (project: Project): string[] => inNamespaceOf(project, groupsOf(project)),
  [BY_SECRET]: (project: Project): string[] => inNamespaceOf(project, foreignSecrets(project)),
};

export const groupIndexers = {
  [BY_SECRET]: (group: VariableGroup): string[] => inNamespaceOf(group, [group.spec.secretRef.name]),
};

const refsOf = (objects: readonly KubernetesObject[]): ObjectRef[] =>
  objects.map(({ metadata }) => ({ namespace: metadata?.namespace, name: metadata?.name ?? "" }));

/** Wakes those that have variables of a group, or of a Secret, that has changed, and those that wait for others to be rolled. */
export function sharedSourcesOf({
  projects,
  secrets,
  variableGroups,
}: {
  projects: Store<Project>;
  secrets: Store;
  variableGroups: Store<VariableGroup>;
}): Source[] {
  const dependantsOf = ({ metadata }: KubernetesObject): ObjectRef[] =>
    refsOf(projects.byIndex(BY_GROUP, `${metadata?.namespace}/${metadata?.name}`));
  const usersOf = ({ metadata }: KubernetesObject): ObjectRef[] => {
    const key = `${metadata?.namespace}/${metadata?.name}`;
    const groups = variableGroups.byIndex(BY_SECRET, key);
    return [...refsOf(projects.byIndex(BY_SECRET, key)), ...groups.flatMap(dependantsOf)];
  };
  return [
    watchMapped(variableGroups, dependantsOf, concernsValues),
    watchMapped(secrets, usersOf),
    watchMapped(projects, ({ metadata }) => refsOf(waitingIn(metadata.namespace, projects)), hasEnded),
  ];
}

/** Whether it is more than the text for people that has changed. */
function concernsValues(event: StoreEvent<VariableGroup>): boolean {
  return (
    event.type !== "update" ||
    !equalJson(event.old.spec.secretRef, event.object.spec.secretRef) ||
    event.old.metadata.deletionTimestamp !== event.object.metadata.deletionTimestamp
  );
}

/** Projects that wait for their turn, those that are woken when a place is free: more of them than there may be places. */
const MOST_WOKEN = 50;

/** Those that have waited longest, in that order. */
export function waitingIn(namespace: string | undefined, projects: Store<Project>): Project[] {
  const waiting = projects.list(namespace).filter(isQueued);
  const since = (project: Project): string => variablesReady(project)?.lastTransitionTime ?? "";
  return waiting
    .toSorted((a, b) => (since(a) < since(b) ? -1 : Number(since(a) > since(b))))
    .slice(0, MOST_WOKEN);
}

/** Whether a deployment has ended with this event. */
function hasEnded(event: StoreEvent<Project>): boolean {
  const isRunning = ({ status, spec }: Project) =>
    spec.paused !== true && status?.deployments?.[0]?.status === "in_progress";
  return event.type === "delete"
    ? isRunning(event.object)
    : event.type === "update" && isRunning(event.old) && !isRunning(event.object);
}
