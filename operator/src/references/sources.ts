/** What wakes the projects that refer to another one: nothing polls. */

import {
  equalJson,
  type KubernetesObject,
  type ObjectRef,
  type Source,
  type Store,
  type StoreEvent,
  watchMapped,
} from "@slipway/controller-runtime";
import { databaseNames, labels, type Project } from "@slipway/crds";
import { namedBy } from "./targets.ts";

/** Index of projects by what their references name, as `namespace/text`. */
export const BY_REFERENCE = "reference";

/** Index of projects by their names, as `namespace/name`. */
export const BY_NAME = "name";

export const referenceIndexers = {
  [BY_REFERENCE]: (project: Project): string[] =>
    namedBy(project).map((text) => `${project.metadata.namespace}/${text}`),
  [BY_NAME]: ({ metadata, spec }: Project): string[] => [`${metadata.namespace}/${spec.name}`],
};

/** The projects whose references lead to one, by its id or its name. */
function dependantsOf({ metadata, spec }: Project, projects: Store<Project>): ObjectRef[] {
  return [metadata.name, spec.name]
    .flatMap((text) => projects.byIndex(BY_REFERENCE, `${metadata.namespace}/${text}`))
    .map(({ metadata: { namespace, name } }) => ({ namespace, name }));
}

/** Whether a change concerns those that refer to the project: what they are given, and on whom it depends itself. */
function concernsDependants(event: StoreEvent<Project>): boolean {
  if (event.type !== "update") {
    return true;
  }
  const view = (project: Project) => {
    const { inside, name, username, referenceUsername, bootstrappedAt, credentialsHash } =
      project.status?.database ?? {};
    return [
      project.metadata.uid,
      project.metadata.deletionTimestamp,
      project.spec.name,
      namedBy(project),
      [inside?.host, inside?.port, name, username, referenceUsername],
      [bootstrappedAt !== undefined, credentialsHash],
    ];
  };
  return !equalJson(view(event.old), view(event.object));
}

/** Wakes exactly those that refer to a project that has changed, or whose accounts have. */
export function referenceSources(projects: Store<Project>, secrets: Store): Source[] {
  const ofSecret = ({ metadata }: KubernetesObject): ObjectRef[] => {
    const id = metadata?.labels?.[labels.project] ?? "";
    const database =
      metadata?.name === databaseNames(id).credentials ? projects.get(metadata.namespace, id) : undefined;
    return database ? dependantsOf(database, projects) : [];
  };
  return [
    watchMapped(projects, (project) => dependantsOf(project, projects), concernsDependants),
    watchMapped(secrets, ofSecret),
  ];
}
