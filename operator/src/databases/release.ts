/** Members that a project no longer requests: they stop, their volumes are marked as unused, and deleted later. */

import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, fieldManagers } from "@slipway/crds";
import { shortestDelay } from "../projects/kind.ts";
import { ordinalOf } from "./common/pods.ts";
import type { Database } from "./database.ts";
import type { ClusterContext, DatabaseDriver, LiveClaim, LiveDatabase } from "./driver.ts";
import { isKept, unusedSince } from "./members.ts";

/** How long until a step that could not be done now is tried again, in milliseconds. */
const RETRY_MS = 3_000;

export interface ReleaseContext extends ClusterContext {
  /** Milliseconds that a volume is kept after it was marked as unused. */
  volumeGraceMs: number;
  /** Records a StatefulSet that was written in the store. */
  observe(statefulSet: KubernetesObject): void;
}

/** A claim, and what is to become of it. */
interface Step {
  claim: LiveClaim;
  kind: "mark" | "unmark" | "delete";
}

/**
 * One step towards the requested instances. Members are stopped, and volumes marked or deleted, only while a
 * primary among those that stay answers and has every acknowledged write. An unused volume that is needed again is created
 * again: what is on it is older than what its member would have to follow, and may be too old to follow at all.
 * @returns milliseconds until the next step; undefined when none is left
 */
export async function releaseMembers(
  database: Database,
  live: LiveDatabase,
  driver: Pick<DatabaseDriver, "isCaughtUp">,
  context: ReleaseContext,
): Promise<number | undefined> {
  if (database.paused) {
    return undefined;
  }
  const running = live.statefulSet?.spec?.replicas ?? 0;
  const surplus = running > database.instances;
  const steps = surplus ? [] : stepsOf(database, live, context);
  if (!surplus && steps.length === 0) {
    return nextDeletionMs(live, context);
  }
  if (!(await isComplete(database, live, driver, context))) {
    return RETRY_MS;
  }
  if (surplus) {
    await stopMembers(database, live, context);
    return RETRY_MS;
  }
  let done = 0;
  for (const step of steps) {
    done += Number(await carryOut(step, live, context));
  }
  return shortestDelay(nextDeletionMs(live, context), done < steps.length ? RETRY_MS : undefined);
}

/** Whether the primary is known to have everything; one that cannot be queried is not. */
async function isComplete(
  database: Database,
  live: LiveDatabase,
  driver: Pick<DatabaseDriver, "isCaughtUp">,
  context: ReleaseContext,
): Promise<boolean> {
  try {
    return await driver.isCaughtUp(database, live, context);
  } catch (error) {
    context.signal.throwIfAborted();
    const { code } = error as { code?: string };
    context.log.warn({ database: database.id, code }, "the primary of a database could not be queried");
    return false;
  }
}

/** What is to be done about volumes now, the last member's first: one that is marked never has unmarked ones above it. */
function stepsOf({ instances }: Database, { claims }: LiveDatabase, context: ReleaseContext): Step[] {
  return claims
    .filter(({ metadata }) => !metadata?.deletionTimestamp)
    .toSorted((a, b) => ordinalOf(b) - ordinalOf(a))
    .flatMap((claim): Step[] => {
      const marked = unusedSince(claim) !== undefined;
      if (ordinalOf(claim) < instances) {
        return marked ? [{ claim, kind: isKept(claim) ? "unmark" : "delete" }] : [];
      }
      if (!marked) {
        return [{ claim, kind: "mark" }];
      }
      return (deletableInMs(claim, context) ?? 1) <= 0 ? [{ claim, kind: "delete" }] : [];
    });
}

/** Milliseconds until a marked claim may be deleted; undefined for one that is not marked, or is to be kept. */
function deletableInMs(claim: LiveClaim, { clock, volumeGraceMs }: ReleaseContext): number | undefined {
  const since = unusedSince(claim);
  return since === undefined || isKept(claim)
    ? undefined
    : since.getTime() + volumeGraceMs - clock.now().getTime();
}

function nextDeletionMs({ claims }: LiveDatabase, context: ReleaseContext): number | undefined {
  const left = claims
    .filter(({ metadata }) => !metadata?.deletionTimestamp)
    .map((claim) => deletableInMs(claim, context))
    .filter((ms) => ms !== undefined && ms > 0);
  return shortestDelay(...left);
}

/** Has the StatefulSet stop what is above the size. An apply of it sets the same, in the same name. */
async function stopMembers(
  { instances }: Database,
  { statefulSet }: LiveDatabase,
  { client, signal, observe }: ReleaseContext,
): Promise<void> {
  const { name = "", namespace, uid } = statefulSet?.metadata ?? {};
  const fewer = { metadata: { uid }, spec: { replicas: instances } };
  const options = { fieldManager: fieldManagers.project, signal };
  observe(await client.patch(resources.statefulSets, { name, namespace }, fewer, options));
}

/** Reads the claim and its pod from the apiserver first. @returns whether it was done */
async function carryOut(
  { claim, kind }: Step,
  live: LiveDatabase,
  context: ReleaseContext,
): Promise<boolean> {
  const { client, clock, event, signal, volumeGraceMs } = context;
  const { name = "", namespace, uid } = claim.metadata ?? {};
  const ref = { namespace, name };
  const pod = name.replace(/^data-/, "");
  const seen = live.pods.some(({ metadata }) => metadata.name === pod);
  if (seen || (await client.getOrUndefined(resources.pods, { namespace, name: pod }, { signal }))) {
    return false;
  }
  if (kind === "delete") {
    const now = await client.getOrUndefined<LiveClaim>(resources.persistentVolumeClaims, ref, { signal });
    if (now?.metadata?.uid !== uid || !now || unusedSince(now) === undefined || isKept(now)) {
      return false;
    }
    const { resourceVersion } = now.metadata ?? {};
    await client.delete(resources.persistentVolumeClaims, ref, { uid, resourceVersion, signal });
    event("Normal", "VolumeDeleted", `The unused volume ${name} is deleted.`);
    return true;
  }
  const at = kind === "mark" ? clock.now().toISOString() : null;
  const patch = { metadata: { uid, annotations: { [annotations.unusedSince]: at } } } as KubernetesObject;
  const options = { fieldManager: fieldManagers.project, signal };
  await client.patch(resources.persistentVolumeClaims, ref, patch, options);
  if (kind === "mark") {
    const until = new Date(clock.now().getTime() + volumeGraceMs).toISOString();
    const note = `The volume ${name} is no longer used. It is deleted after ${until}, unless it is annotated with ${annotations.keep}.`;
    event("Normal", "VolumeUnused", note);
  }
  return true;
}
