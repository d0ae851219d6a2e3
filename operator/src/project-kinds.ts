/** Every type of project that the operator reconciles; the project controller imports none of them. */

import { type HttpDependencies, HttpKind } from "./applications/kind.ts";
import { databaseDrivers } from "./databases/drivers.ts";
import { type DatabaseDependencies, databaseKinds } from "./databases/kind.ts";
import { type JobDependencies, JobKind } from "./jobs/kind.ts";
import type { KindDependencies, ProjectKinds } from "./projects/kind.ts";

/** What each type needs in addition to what all do. */
export interface ProjectKindOptions {
  applications: Omit<HttpDependencies, keyof KindDependencies>;
  jobs: Omit<JobDependencies, keyof KindDependencies>;
  databases: Omit<DatabaseDependencies, keyof KindDependencies>;
}

/** Creates them. */
export function projectKinds({
  applications,
  jobs,
  databases,
}: ProjectKindOptions): (shared: KindDependencies) => ProjectKinds {
  return (shared) => {
    // A worker is an application without an address.
    const ofInstances = new HttpKind({ ...shared, ...applications });
    return {
      http: ofInstances,
      worker: ofInstances,
      job: new JobKind({ ...shared, ...jobs }),
      ...databaseKinds(databaseDrivers(), { ...shared, ...databases }),
    };
  };
}
