/** `status.exposure`: the current exposure, and the change under way. Pure. */

import type { Project, ProjectStatus } from "@slipway/crds";

type Exposure = ProjectStatus["exposure"];

/** Before anything is done: a change runs from the moment in which the spec asks for another exposure. */
export function exposureAtStart({ spec, status }: Project): Exposure {
  if (spec.exposure === undefined) {
    return undefined;
  }
  const current = status?.exposure?.current ?? spec.exposure;
  return current === spec.exposure && !status?.exposure?.changing ? { current } : { current, changing: true };
}

/** The progress of the routes and claims in a reconcile. */
export type ExposureProgress =
  /** They are as desired. */
  | "done"
  /** They are changing. */
  | "moving"
  /** They cannot become as desired: the project is not reachable, and no change is under way. */
  | "refused";

/** After a reconcile. A change that began ends with `done` or `refused`; later troubles of a route are no change of exposure. */
export function exposureAfter(project: Project, progress: ExposureProgress): Exposure {
  const start = exposureAtStart(project);
  const { exposure } = project.spec;
  if (!start?.changing || exposure === undefined) {
    return start;
  }
  switch (progress) {
    case "done":
      return { current: exposure };
    case "moving":
      return start;
    case "refused":
      return { current: start.current };
  }
}
