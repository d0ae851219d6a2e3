/** Whether a database is supported as its spec requests it. Pure. */

import {
  type Catalog,
  type DatabasePlan,
  type EngineOffer,
  findPlan,
  isDatabaseType,
  type Project,
} from "@slipway/crds";
import { refuse } from "../projects/accept.ts";
import type { DatabaseDriver } from "./driver.ts";
import { type DatabaseImages, imageOf } from "./settings.ts";
import { instancesOf } from "./to-database.ts";

/**
 * @param id of the plan that it is to run on
 * @throws TerminalError about the condition `Accepted`
 */
export function acceptDatabase(
  project: Project,
  { catalog, images, driver }: { catalog: Catalog; images: DatabaseImages; driver: DatabaseDriver },
  id = project.spec.plan,
): DatabasePlan {
  const { type, version = "" } = project.spec;
  if (!isDatabaseType(type) || !images[type]) {
    throw refuse("TypeNotSupported", `Projects of type ${type} are not supported on this platform.`);
  }
  if (!catalog.databasesEnabled) {
    throw refuse("FeatureNotSupported", "Databases are disabled on this platform.");
  }
  const plan = catalog.databasePlans.find((one) => one.plan === id);
  if (!plan) {
    throw findPlan(catalog, id)
      ? refuse("PlanIncompatible", `The plan ${id} is not for databases.`)
      : refuse("UnknownPlan", `The plan ${id} is not in the catalog.`);
  }
  const offer = plan.engines[type];
  if (!offer) {
    throw refuse("PlanIncompatible", `The plan ${id} has no ${type}.`);
  }
  checkOffer(project, plan, offer);
  const image = imageOf(images, type, version);
  if (!image) {
    throw refuse("FeatureNotSupported", `This platform has no image of ${type} ${version}.`);
  }
  const refused = driver.refuse?.(project, plan, image);
  if (refused) {
    throw refuse(refused.reason, refused.message);
  }
  return plan;
}

function checkOffer(
  project: Project,
  plan: DatabasePlan,
  { instances, storage, versions }: EngineOffer,
): void {
  const { version = "", storage: requested } = project.spec;
  const lacks = (what: string) => refuse("FeatureNotInPlan", `The plan ${plan.plan} ${what}.`);
  if (!versions.includes(version)) {
    throw lacks(`has no version ${version}`);
  }
  const count = instancesOf(project, plan);
  if (count < instances.min || count > instances.max) {
    throw lacks(
      instances.min === instances.max
        ? `has exactly ${instances.max} instances`
        : `has ${instances.min} to ${instances.max} instances`,
    );
  }
  if (requested && (requested.capacity < storage.min || requested.capacity > storage.max)) {
    throw lacks(`has ${storage.min} to ${storage.max} GB of storage`);
  }
}
