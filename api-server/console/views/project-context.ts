import type { Route } from "../lib/route.ts";
import type { Project } from "../lib/shapes.ts";
import type { Context } from "../lib/view.ts";

export type ProjectRoute = Extract<Route, { view: "project" }>;

/** What a part of a project's page is given. */
export interface ProjectContext extends Context {
  route: ProjectRoute;
  /** As it was when the part was opened. */
  project: Project;
  /** Calls back with the project as it changes, until the part is left. */
  onChange: (changed: (project: Project) => void) => void;
}
