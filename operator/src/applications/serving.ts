/** The version of an application that serves now: what a command runs in that runs apart from its instances. Pure. */

import {
  type Catalog,
  type Deployment,
  type HttpPlan,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import { withBuiltImage } from "../projects/images/built-image.ts";
import { hasValues } from "../references/targets.ts";
import type { Placement } from "../workload/app.ts";
import { toWorkload } from "../workload/view.ts";
import type { CommandApp } from "./desired/command-pod.ts";
import { withSettingsOf } from "./recreate.ts";

/** What of the platform matters. */
export interface ServingOrigin {
  catalog: Pick<Catalog, "httpPlans" | "storagePlans">;
  /** Where instances run. */
  placement?: Placement;
}

export interface Serving {
  deployment: Deployment;
  plan: HttpPlan;
  app: CommandApp;
}

/**
 * The last deployment that has succeeded, with its own image, variables and plan; references have the values that were resolved last.
 * @returns `none` when nothing has ever served, `incomplete` when its plan or values of its references do not exist any more
 */
export function servingVersion(
  project: Project,
  { catalog, placement }: ServingOrigin,
): Serving | "none" | "incomplete" {
  const { deployments = [], references = [] } = project.status ?? {};
  const deployment = deployments.find(({ status }) => status === "succeeded");
  if (!deployment) {
    return "none";
  }
  const version = withSettingsOf(withBuiltImage(project), deployment);
  const plan = catalog.httpPlans.find((one) => one.plan === version.spec.plan);
  const resolved = new Map(references.map((one) => [one.secret, one.resolved]));
  const organizationId = organizationOfNamespace(project.metadata.namespace ?? "");
  if (!plan || !version.spec.image || organizationId === undefined || !hasValues(version.spec, resolved)) {
    return "incomplete";
  }
  const { type, port = 8080 } = version.spec;
  const app = { ...toWorkload(version, { organizationId, plan, resolved }, catalog), placement };
  return { deployment, plan, app: type === "http" ? { ...app, port } : app };
}
