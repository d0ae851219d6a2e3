/** The shared variables of a version that served, for a project that returns to it. */

import type { Deployment, Project } from "@slipway/crds";
import { withSettingsOf } from "../applications/recreate.ts";
import type { ProjectStores } from "../projects/stores.ts";
import type { ResolvedSecrets } from "../references/reconciler.ts";
import { groupsIn, isSharedSource } from "./shared.ts";

/**
 * The project with the settings of an earlier deployment, and the very copies that its pods had, unless one of them is deleted: then with
 * those of now. Values of references are those of now in any case: a renewed password is the only one that its database takes.
 * @param resolved what the variables of now are made from
 */
export function withEarlierCopies(
  project: Project,
  previous: Deployment,
  resolved: ResolvedSecrets | undefined,
  { secrets }: Pick<ProjectStores, "secrets">,
): { earlier: Project; resolved: ResolvedSecrets } {
  const now = resolved ?? new Map<string, string>();
  const earlier = withSettingsOf(project, previous);
  const copies = previous.sharedVariables ?? [];
  const { namespace } = project.metadata;
  if (copies.some(({ resolved: name, direct }) => !direct && !secrets.get(namespace, name))) {
    return { earlier, resolved: now };
  }
  const references = [...now].filter(([source]) => !isSharedSource(source));
  const shared = copies.flatMap(({ source, resolved: name, direct }): [string, string][] =>
    direct ? [] : [[source, name]],
  );
  const variableGroups = groupsIn(copies);
  return {
    earlier: { ...earlier, spec: { ...earlier.spec, variableGroups } },
    resolved: new Map([...references, ...shared]),
  };
}
