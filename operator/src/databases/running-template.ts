/**
 * The template that a database's instances run from: an image and a version of what templates are made from. Those of a later release are used from
 * the next replacement of its instances. Pure.
 */

import { resources } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { appStatus, hasStartFault } from "../applications/pod-problem.ts";
import { NEWEST_TEMPLATE_VERSION } from "../workload/template-version.ts";
import { CONTAINER } from "./common/pod.ts";
import { isReady } from "./common/pods.ts";
import { imageFeatures } from "./common/stateful-set.ts";
import type { Database } from "./database.ts";
import type { DatabaseDriver, LiveDatabase, LivePod, LiveStatefulSet } from "./driver.ts";

/** Versions of templates that this operator can render, the newest first. */
const VERSIONS = Array.from(
  { length: NEWEST_TEMPLATE_VERSION },
  (_, index) => NEWEST_TEMPLATE_VERSION - index,
);

/** An image, and the hash of the template that it was in. */
interface Used {
  image: string | undefined;
  settingsHash: string | undefined;
}

/**
 * A database with the image and the version of templates that its instances run from, while nothing else of their template has changed: an
 * upgrade of the platform that offers others replaces no instance, and a plan that is taken back comes with the image that ran on it. Another
 * plan, other settings, a restart and a resumption replace instances; so does an image that none can start from.
 * @param database with the image that is offered, and the version of new templates
 */
export function withRunningTemplate(
  driver: Pick<DatabaseDriver, "desired">,
  database: Database,
  { statefulSet, pods }: Pick<LiveDatabase, "statefulSet" | "pods">,
): Database {
  const template = statefulSet?.spec?.template;
  if (
    containerImage(template?.spec) === database.image.image &&
    hashOf(template?.metadata) === settingsHashOf(driver, database)
  ) {
    return database;
  }
  // Those of the image that runs come before those of the one that is offered.
  const known = [statefulSet && imageFeatures(statefulSet), database.image.features].filter(
    (features) => features !== undefined,
  );
  for (const { image, settingsHash } of usedImages({ statefulSet, pods })) {
    if (image === undefined || isFaulty(image, pods)) {
      continue;
    }
    for (const features of known) {
      for (const templateVersion of VERSIONS) {
        const unchanged = { ...database, templateVersion, image: { ...database.image, image, features } };
        if (settingsHashOf(driver, unchanged) === settingsHash) {
          return unchanged;
        }
      }
    }
  }
  return database;
}

/** Those of the instances, and that of their template, from which a deleted one is created again. */
function usedImages({ statefulSet, pods }: Pick<LiveDatabase, "statefulSet" | "pods">): Used[] {
  const staying = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const ofPods = staying.map((pod) => ({
    image: containerImage(pod.spec),
    settingsHash: hashOf(pod.metadata),
  }));
  const { replicas = 0, template } = statefulSet?.spec ?? {};
  const ofTemplate = { image: containerImage(template?.spec), settingsHash: hashOf(template?.metadata) };
  const all = replicas > 0 ? [...ofPods, ofTemplate] : ofPods;
  return [...new Map(all.map((used) => [`${used.image} ${used.settingsHash}`, used])).values()];
}

const containerImage = (spec: LivePod["spec"]): string | undefined =>
  spec?.containers?.find(({ name }) => name === CONTAINER)?.image;

const hashOf = (metadata: { annotations?: Readonly<Record<string, string>> } | undefined) =>
  metadata?.annotations?.[annotations.settingsHash];

/** Whether an instance cannot start from an image, or all end again and again: only another one can repair that. */
function isFaulty(image: string, pods: readonly LivePod[]): boolean {
  const own = pods.filter((pod) => containerImage(pod.spec) === image);
  const crashes = (pod: LivePod) => appStatus(pod, CONTAINER)?.state?.waiting?.reason === "CrashLoopBackOff";
  return (
    own.some((pod) => hasStartFault(pod, CONTAINER)) ||
    (own.some(crashes) && !own.some((pod) => isReady(pod)))
  );
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
  return hashOf((set as LiveStatefulSet | undefined)?.spec?.template?.metadata);
}
