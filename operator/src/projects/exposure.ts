/** `status.exposure`: what is in place, and whether a change is under way. Pure. */

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

/** How far a reconcile has brought the routes and claims. */
export type ExposureProgress =
  /** They are as asked. */
  | "done"
  /** They are on their way. */
  | "moving"
  /** They cannot become as asked: the project is not reachable, and no change is under way. */
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
