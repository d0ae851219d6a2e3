/** What the instances report of themselves (`INFO`), which of them is the primary, and which have to follow it. Pure. */

import { roles } from "../common/metadata.ts";
import { hasRole, ordinalOf, primaryOf } from "../common/pods.ts";
import type { Relabelling } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { LivePod } from "../driver.ts";
import { nodeAddress, sizeOf } from "./names.ts";

/** Priority of a replica that Sentinels may promote: the server's default. */
export const DEFAULT_PRIORITY = 100;

/** The state of an instance, as it reports it. */
export interface MemberState {
  version: string;
  role: "primary" | "replica";
  /** Replicas of a primary that are online, and so up to date but for what is in transit. */
  followers: number;
  /** Address that a replica was configured to follow. */
  follows?: string;
  /** A replica has its primary's data and receives what is new. */
  linked: boolean;
  /** Of a replica: 0 is never promoted by Sentinels. */
  priority?: number;
}

/** @param text of `INFO server replication`; undefined when it is none */
export function parseMemberState(text: string): MemberState | undefined {
  const fields = new Map(
    text.split(/\r?\n/).flatMap((line) => {
      const at = line.indexOf(":");
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)] as const] : [];
    }),
  );
  const version = fields.get("valkey_version");
  const role = fields.get("role");
  if (version === undefined || (role !== "master" && role !== "slave")) {
    return undefined;
  }
  if (role === "slave") {
    const linked = fields.get("master_link_status") === "up";
    const priority = Number(fields.get("slave_priority") ?? DEFAULT_PRIORITY);
    return { version, role: "replica", followers: 0, follows: fields.get("master_host"), linked, priority };
  }
  const followers = [...fields].filter(
    ([name, value]) => /^slave[0-9]+$/.test(name) && value.includes("state=online"),
  ).length;
  return { version, role: "primary", followers, linked: true };
}

/** Pods and their states, without those that do not answer. */
export type MemberStates = ReadonlyMap<LivePod, MemberState>;

/**
 * The instance that accepts writes. Of several that report to be the primary, the one that others report to follow: one that
 * was cut off still counts its followers for a while. One without followers stays the primary while no other instance reports
 * to be it.
 */
export function choosePrimary(database: Database, memberStates: MemberStates): LivePod | undefined {
  const claims = [...memberStates].filter(([, { role }]) => role === "primary");
  if (sizeOf(database) === 1) {
    return claims[0]?.[0];
  }
  const chosen = mostFollowed(database, claims, memberStates);
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

/** Of several that report to be the primary the one that most others report to follow. */
function mostFollowed(
  database: Database,
  claims: readonly [LivePod, MemberState][],
  memberStates: MemberStates,
): LivePod | undefined {
  const followed = [...memberStates.values()].flatMap(({ follows, linked }) =>
    linked && follows ? [follows] : [],
  );
  const counted = claims.map(([pod]) => {
    const address = nodeAddress(database, ordinalOf(pod));
    return { pod, count: followed.filter((one) => one === address).length };
  });
  const most = Math.max(...counted.map(({ count }) => count));
  const best = counted.filter(({ count }) => count === most);
  return claims.length > 1 && most > 0 && best.length === 1 ? best[0]?.pod : undefined;
}

/**
 * The previous primary, when it answers its kubelet but not the operator, and no other instance reports to be it: on a busy
 * node an answer needs long, and is no reason for a failover.
 */
export function silentPrimary(pods: readonly LivePod[], memberStates: MemberStates): LivePod | undefined {
  const primary = primaryOf({ pods });
  const claimed = [...memberStates.values()].some(({ role }) => role === "primary");
  return primary && !memberStates.has(primary) && !claimed ? primary : undefined;
}

/** Labels to change, in this order: a Service never has two primaries. */
export function relabelled(
  pods: readonly LivePod[],
  primary: LivePod | undefined,
  memberStates: MemberStates,
): Relabelling[] {
  if (!primary) {
    return [];
  }
  const replicas = pods.filter(
    (pod) =>
      pod !== primary &&
      !hasRole(pod, roles.replica) &&
      (memberStates.has(pod) || hasRole(pod, roles.primary)) &&
      !pod.metadata.deletionTimestamp,
  );
  return [
    ...replicas.map((pod) => ({ pod, role: roles.replica })),
    ...(hasRole(primary, roles.primary) ? [] : [{ pod: primary, role: roles.primary }]),
  ];
}

/** Instances that neither are the primary nor follow it: a Sentinel may never attach them. */
export function detached(
  database: Database,
  primary: LivePod | undefined,
  memberStates: MemberStates,
): LivePod[] {
  if (!primary) {
    return [];
  }
  const address = nodeAddress(database, ordinalOf(primary));
  return [...memberStates].flatMap(([pod, { follows }]) =>
    pod !== primary && follows !== address ? [pod] : [],
  );
}
