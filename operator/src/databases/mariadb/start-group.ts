/** Carries out what is decided about a group in which no member serves, and the data loss that a person has accepted. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { annotations, fieldManagers } from "@slipway/crds";
import { projectResource } from "../../resources.ts";
import { ordinalOf } from "../common/pods.ts";
import { primaryMissing, replaceOutdatedPod } from "../common/rolling.ts";
import type { SetUpMemory } from "../common/setup.ts";
import type { ClusterState } from "../driver.ts";
import type { Cluster } from "../reconciler.ts";
import { order } from "./commands.ts";
import { type Decision, type Group, parseAccepted } from "./recovery.ts";
import type { MemberStates } from "./topology.ts";

/** How long running members have to find each other again before the operator intervenes. */
const STUCK_MS = 30_000;

export interface GroupMemory extends SetUpMemory {
  /** Since when no member serves, in milliseconds. */
  leaderlessSince?: number;
  /** The last refusal that an event has reported. */
  refused?: string;
}

/** The group, as its recovery is decided from it. */
export function groupOf(
  { database, live, memory, context }: Cluster<GroupMemory>,
  memberStates: MemberStates,
): Group {
  const { acceptDataLoss, clock, status } = context;
  const members = Array.from({ length: database.members }, (_, ordinal) => {
    const pod = live.pods.find((one) => ordinalOf(one) === ordinal);
    return pod && memberStates.get(pod);
  });
  const now = clock.now().getTime();
  memory.leaderlessSince ??= now;
  return {
    members,
    bootstrapped: database.bootstrapped,
    identity: status.identity,
    stuck: now - memory.leaderlessSince >= STUCK_MS,
    accepted: parseAccepted(acceptDataLoss),
  };
}

/** One step towards a group in which a member serves. */
export async function startGroup(
  decision: Exclude<Decision, { kind: "serve" }>,
  cluster: Cluster<GroupMemory>,
  { pollIntervalMs, execRetryMs }: { pollIntervalMs: number; execRetryMs: number },
): Promise<ClusterState> {
  const { database, live, memory, context } = cluster;
  if (decision.kind === "refuse") {
    const { reason, message } = decision.finding;
    if (memory.refused !== message) {
      context.event("Warning", reason, message);
      memory.refused = message;
    }
    return { missing: decision.finding, requeueAfterMs: execRetryMs };
  }
  if (decision.kind === "wait") {
    await replaceOutdatedPod(live, context);
    return { missing: decision.finding, requeueAfterMs: pollIntervalMs };
  }
  const { member, run } = decision;
  const pod = live.pods.find((one) => ordinalOf(one) === member);
  if (pod) {
    const accepted = await order(pod, decision.order, run, context);
    context.log.info({ order: decision.order, member, accepted }, "a member of a group received an order");
    if (accepted && decision.despite !== undefined) {
      await recordLoss(cluster, decision.despite);
    }
  }
  return { missing: primaryMissing(database), requeueAfterMs: pollIntervalMs };
}

/** Records that an accepted loss was acted on: it is never acted on again. */
async function recordLoss(cluster: Cluster, refused: string): Promise<void> {
  const { acceptDataLoss, event, log } = cluster.context;
  const note = `The group goes on from ${acceptDataLoss} (${annotations.acceptDataLoss}); what any instance had beyond it is given up. ${refused}`;
  event("Warning", "DataLossAccepted", note);
  log.warn({ database: cluster.database.id, acceptDataLoss, refused }, "data loss was accepted");
  await removeAcceptance(cluster);
}

export async function removeAcceptance({ database, context }: Cluster): Promise<void> {
  const { acceptDataLoss, client, signal } = context;
  if (acceptDataLoss !== undefined) {
    const ref = { namespace: database.namespace, name: database.id };
    const none = { metadata: { annotations: { [annotations.acceptDataLoss]: null } } };
    const options = { fieldManager: fieldManagers.project, signal };
    await client.patch(projectResource, ref, none as unknown as KubernetesObject, options);
  }
}
