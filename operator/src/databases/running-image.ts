/** The image that a database runs from: what a release brings is used once its instances are replaced anyway. Pure. */

import { resources } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { isReady } from "./common/pods.ts";
import type { Database } from "./database.ts";
import type { DatabaseDriver, LiveDatabase, LiveStatefulSet } from "./driver.ts";

/**
 * A database with the image that its instances run from, while that works and nothing else of their template has changed: an upgrade of the
 * platform that offers another image replaces no instance. Another plan, other settings, a restart and a resumption replace them.
 * @param database with the image that is offered
 */
export function withRunningImage(
  driver: Pick<DatabaseDriver, "desired">,
  database: Database,
  { statefulSet, pods }: Pick<LiveDatabase, "statefulSet" | "pods">,
): Database {
  const template = statefulSet?.spec?.template;
  const running = template?.spec?.containers?.find(({ name }) => name === "database")?.image;
  // An image that no instance could start from is to be repaired by another one.
  if (running === undefined || running === database.image.image || !pods.some(isReady)) {
    return database;
  }
  const unchanged = { ...database, image: { ...database.image, image: running } };
  const applied = template?.metadata?.annotations?.[annotations.settingsHash];
  return settingsHashOf(driver, unchanged) === applied ? unchanged : database;
}

/** Hash of the template that a database's instances are to be made from. */
export function settingsHashOf(
  driver: Pick<DatabaseDriver, "desired">,
  database: Database,
): string | undefined {
  const { kind } = resources.statefulSets;
  const set = driver
    .desired(database)
    .find((object) => object.kind === kind && object.metadata?.name === database.names.main);
  return (set as LiveStatefulSet | undefined)?.spec?.template?.metadata?.annotations?.[
    annotations.settingsHash
  ];
}
