/** Every type of project that the operator reconciles; the project controller knows none of them by itself. */

import { type DatabaseDependencies, databaseKinds } from "./database/kind.ts";
import { engines } from "./database/registry.ts";
import { type HttpDependencies, HttpKind } from "./project/http/kind.ts";
import { type JobDependencies, JobKind } from "./project/job/kind.ts";
import type { KindDependencies, ProjectKinds } from "./project/kind.ts";

/** What each type needs beside what all do. */
export interface ProjectKindOptions {
  applications: Omit<HttpDependencies, keyof KindDependencies>;
  jobs: Omit<JobDependencies, keyof KindDependencies>;
  databases: Omit<DatabaseDependencies, keyof KindDependencies>;
}

/** Makes them. */
export function projectKinds({
  applications,
  jobs,
  databases,
}: ProjectKindOptions): (shared: KindDependencies) => ProjectKinds {
  return (shared) => ({
    http: new HttpKind({ ...shared, ...applications }),
    job: new JobKind({ ...shared, ...jobs }),
    ...databaseKinds(engines(), { ...shared, ...databases }),
  });
}
