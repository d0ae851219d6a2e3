/** Where a project's variables come from that others may change under it: variable groups, and Secrets that others write. Pure. */

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

/**
 * Every source of a project, in the order in which its container gets them.
 * @param groupNamed finds a group of the project's namespace
 */
export function sharedSources(
  project: Project,
  groupNamed: (name: string) => VariableGroup | undefined,
): (SharedSource | (Finding & Pick<SharedSource, "key">))[] {
  const groups = groupsOf(project).map((name) => {
    const key = groupSource(name);
    const group = groupNamed(name);
    return group === undefined || group.metadata.deletionTimestamp !== undefined
      ? {
          key,
          reason: "VariableGroupNotFound" as const,
          message: `The variable group ${name} does not exist`,
        }
      : { key, secret: group.spec.secretRef.name, group: name };
  });
  const foreign = foreignSecrets(project).map((secret) => ({ key: secretSource(secret), secret }));
  return [...groups, ...foreign];
}

/** Whether a project that is deployed already reads a Secret itself: its pods must not be replaced by an upgrade of the operator alone. */
export function readsDirectly(secret: string, [newest]: readonly Deployment[]): boolean {
  return newest?.settings.envsFrom?.some(({ name }) => name === secret) === true;
}
