/** Where a project's variables come from that others may change under it: variable groups, and Secrets that others write. Pure. */

import { findCondition } from "@slipway/controller-runtime";
import {
  type Deployment,
  isEnvSecretName,
  isInstanceType,
  mayRefer,
  type Project,
  type VariableGroup,
} from "@slipway/crds";
import type { Finding } from "../projects/status.ts";

/** What the values of a project are copied from. */
export interface SharedSource {
  /** As in `status.sharedVariables`. */
  key: string;
  /** Secret with the variables. */
  secret: string;
  /** Name of the group; absent of a Secret that the spec names itself. */
  group?: string;
}

export const groupSource = (group: string): string => `VariableGroup/${group}`;
export const secretSource = (secret: string): string => `Secret/${secret}`;

/** Whether a key is that of a shared source. Those of references are names of Secrets, which have no slash. */
export const isSharedSource = (key: string): boolean => key.includes("/");

/** The groups among recorded sources, in their order. */
export const groupsIn = (copies: readonly { source: string }[]): string[] =>
  copies.flatMap(({ source }) =>
    source.startsWith(groupSource("")) ? [source.slice(groupSource("").length)] : [],
  );

/**
 * The Secrets that others write of those that a spec names. `/v1` names the ones that it creates by their content and never changes them, and
 * what has references is resolved from it in any case. A job's runs read each Secret as it is when they start.
 */
export function foreignSecrets({ metadata, spec }: Pick<Project, "metadata" | "spec">): string[] {
  return isInstanceType(spec.type)
    ? (spec.envsFrom ?? [])
        .filter(({ name, references }) => references === undefined && !isEnvSecretName(metadata.name, name))
        .map(({ name }) => name)
    : [];
}

/** The groups that a spec attaches, in its order. */
export function groupsOf({ spec }: Pick<Project, "spec">): readonly string[] {
  return mayRefer(spec.type) ? (spec.variableGroups ?? []) : [];
}

/** Whether a project has variables that others may change under it. */
export const sharesVariables = (project: Project): boolean =>
  groupsOf(project).length > 0 || foreignSecrets(project).length > 0;

/** Sources that one copy is made of: they come directly after one another, so that the order of all variables stays as it is. */
export interface SharedRun {
  /** Of each source, in their order. */
  keys: string[];
  isOfGroups: boolean;
  sources: SharedSource[];
  /** Why not all of the sources are known. */
  problem?: Finding;
}

/**
 * What a project's copies are made of, in the order in which its container gets them: all its groups are one, and so are Secrets of others
 * that no Secret of its own separates.
 * @param groupNamed finds a group of the project's namespace
 */
export function sharedRuns(
  project: Project,
  groupNamed: (name: string) => VariableGroup | undefined,
): SharedRun[] {
  const groups = groupsOf(project);
  const sources = groups.flatMap((name): SharedSource[] => {
    const group = groupNamed(name);
    return group === undefined || group.metadata.deletionTimestamp !== undefined
      ? []
      : [{ key: groupSource(name), secret: group.spec.secretRef.name, group: name }];
  });
  const missing = groups.find((name) => sources.every(({ group }) => group !== name));
  const ofGroups: SharedRun = { keys: groups.map(groupSource), isOfGroups: true, sources };
  if (missing !== undefined) {
    const message = `The variable group ${missing} does not exist`;
    ofGroups.problem = { reason: "VariableGroupNotFound", message };
  }
  return [...(groups.length > 0 ? [ofGroups] : []), ...foreignRuns(project)];
}

function foreignRuns(project: Project): SharedRun[] {
  const foreign = new Set(foreignSecrets(project));
  const runs: SharedRun[] = [];
  let current: SharedRun | undefined;
  for (const { name: secret } of project.spec.envsFrom ?? []) {
    if (!foreign.has(secret)) {
      current = undefined;
      continue;
    }
    if (current === undefined) {
      current = { keys: [], isOfGroups: false, sources: [] };
      runs.push(current);
    }
    const key = secretSource(secret);
    current.keys.push(key);
    current.sources.push({ key, secret });
  }
  return runs;
}

/** What is recorded of a run's copy, also where other sources were in it. */
export function recordedOf<T extends { source: string }>(
  { keys, isOfGroups }: SharedRun,
  recorded: readonly T[],
): T[] {
  return recorded.filter(({ source }) =>
    isOfGroups ? source.startsWith(groupSource("")) : keys.includes(source),
  );
}

/** Whether a project that is deployed already reads a Secret itself: its pods must not be replaced by an upgrade of the operator alone. */
export function readsDirectly(secret: string, [newest]: readonly Deployment[]): boolean {
  return newest?.settings.envsFrom?.some(({ name }) => name === secret) === true;
}

export const variablesReady = ({ status }: Project) => findCondition(status?.conditions, "VariablesReady");

/** Whether a project waits for its turn to be rolled to other values. */
export const isQueued = (project: Project): boolean => variablesReady(project)?.reason === "RolloutQueued";
