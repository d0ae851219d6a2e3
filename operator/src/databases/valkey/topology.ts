/** What is to be done about instances that say this and that. Pure. */

import { roles } from "../common/metadata.ts";
import { hasRole, ordinalOf, primaryOf } from "../common/pods.ts";
import type { Database } from "../database.ts";
import type { LivePod } from "../driver.ts";
import type { Facts } from "./facts.ts";
import { nodeAddress, sizeOf } from "./names.ts";

/** Pods and their words; those that do not answer are not in it. */
export type Answers = ReadonlyMap<LivePod, Facts>;

/**
 * The instance that takes writes. Of several that believe it is them, the one that others say they follow: one that was cut
 * off believes for a while that it is still followed. One that nobody follows stays what it was while nobody else claims to
 * be it.
 */
export function choosePrimary(database: Database, answers: Answers): LivePod | undefined {
  const claims = [...answers].filter(([, { role }]) => role === "primary");
  if (sizeOf(database) === 1) {
    return claims[0]?.[0];
  }
  const chosen = mostFollowed(database, claims, answers);
  if (chosen) {
    return chosen;
  }
  const followed = claims.filter(([, { followers }]) => followers > 0);
  const most = Math.max(...followed.map(([, { followers }]) => followers));
  const best = followed.filter(([, { followers }]) => followers === most);
  if (best.length > 0) {
    return best.length === 1 ? best[0]?.[0] : undefined;
  }
  const [only, ...others] = claims;
  return only && others.length === 0 && hasRole(only[0], roles.primary) ? only[0] : undefined;
}

/** Of several that claim to be the primary the one that most others say they follow. */
function mostFollowed(
  database: Database,
  claims: readonly [LivePod, Facts][],
  answers: Answers,
): LivePod | undefined {
  const told = [...answers.values()].flatMap(({ follows, linked }) => (linked && follows ? [follows] : []));
  const counted = claims.map(([pod]) => {
    const address = nodeAddress(database, ordinalOf(pod));
    return { pod, count: told.filter((one) => one === address).length };
  });
  const most = Math.max(...counted.map(({ count }) => count));
  const best = counted.filter(({ count }) => count === most);
  return claims.length > 1 && most > 0 && best.length === 1 ? best[0]?.pod : undefined;
}

/**
 * The primary of before, when it does not answer the operator but its kubelet, and nobody else claims to be it: on a busy
 * node that takes long, and is no reason to call it gone.
 */
export function silentPrimary(pods: readonly LivePod[], answers: Answers): LivePod | undefined {
  const primary = primaryOf({ pods });
  const claimed = [...answers.values()].some(({ role }) => role === "primary");
  return primary && !answers.has(primary) && !claimed ? primary : undefined;
}

/** Labels that are to change, in this order: nobody is led to two primaries. */
export function relabelled(
  pods: readonly LivePod[],
  primary: LivePod | undefined,
  answers: Answers,
): { pod: LivePod; role: "primary" | "replica" }[] {
  if (!primary) {
    return [];
  }
  const replicas = pods.filter(
    (pod) =>
      pod !== primary &&
      !hasRole(pod, roles.replica) &&
      (answers.has(pod) || hasRole(pod, roles.primary)) &&
      !pod.metadata.deletionTimestamp,
  );
  return [
    ...replicas.map((pod) => ({ pod, role: roles.replica })),
    ...(hasRole(primary, roles.primary) ? [] : [{ pod: primary, role: roles.primary }]),
  ];
}

/** Instances that neither are the primary nor follow it: a Sentinel may never tell them to. */
export function detached(database: Database, primary: LivePod | undefined, answers: Answers): LivePod[] {
  if (!primary) {
    return [];
  }
  const address = nodeAddress(database, ordinalOf(primary));
  return [...answers].flatMap(([pod, { follows }]) => (pod !== primary && follows !== address ? [pod] : []));
}
