/** Ways along the references of an organization's projects. Pure. */

import { findReferenced, type Project, readReference } from "@slipway/crds";

/** Finds projects by id or name without going through all of them. */
export class ProjectIndex {
  readonly #byId: ReadonlyMap<string, Project>;
  readonly #byName: ReadonlyMap<string, readonly Project[]>;

  constructor(projects: readonly Project[]) {
    this.#byId = new Map(projects.map((project) => [project.metadata.name, project]));
    this.#byName = Map.groupBy(projects, ({ spec }) => spec.name);
  }

  get(id: string): Project | undefined {
    return this.#byId.get(id);
  }

  /** Those that have this text for an id or a name. */
  called(text: string): Project[] {
    const project = this.#byId.get(text);
    return [...(project ? [project] : []), ...(this.#byName.get(text) ?? [])];
  }

  /**
   * The shortest way along references from each project that leads to this one, as the id of the next project on it. It takes time linear
   * in projects and references, however many ways are asked for.
   */
  stepsTo(destination: string): ReadonlyMap<string, string> {
    const referrers = new Map<string, string[]>();
    const named = new Map<string, string | undefined>();
    for (const [id, { spec }] of this.#byId) {
      for (const { reference, project } of spec.envsFrom?.flatMap(({ references = [] }) => references) ??
        []) {
        const target = project ?? this.#idOf(readReference(reference).project, named);
        if (target !== undefined) {
          const known = referrers.get(target) ?? [];
          known.push(id);
          referrers.set(target, known);
        }
      }
    }
    const steps = new Map<string, string>();
    const reached = [destination];
    for (const id of reached) {
      for (const referrer of referrers.get(id) ?? []) {
        if (referrer !== destination && !steps.has(referrer)) {
          steps.set(referrer, id);
          reached.push(referrer);
        }
      }
    }
    return steps;
  }

  #idOf(text: string, known: Map<string, string | undefined>): string | undefined {
    if (!known.has(text)) {
      known.set(text, findReferenced(text, this.called(text)).found?.metadata.name);
    }
    return known.get(text);
  }
}

/** From a project to one of its targets, and along these steps back to it: ids, both ends included; undefined when no way leads back. */
export function wayBack(
  project: string,
  target: string,
  steps: ReadonlyMap<string, string>,
): string[] | undefined {
  const way = [project];
  for (let id: string | undefined = target; id !== project; id = steps.get(id)) {
    if (id === undefined) {
      return undefined;
    }
    way.push(id);
  }
  return [...way, project];
}
