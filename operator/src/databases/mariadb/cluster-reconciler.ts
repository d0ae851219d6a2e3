/** Reconciles the members of a MariaDB group: bootstrap, role labels, accounts, rolling updates. */

import { hashJson, type KubernetesObject } from "@slipway/controller-runtime";
import { annotations, fieldManagers } from "@slipway/crds";
import { projectResource } from "../../resources.ts";
import { isReady, ordinalOf, startOf, stayingPrimary } from "../common/pods.ts";
import { primaryMissing, replaceOutdatedPod, roll, SWITCHING_OVER } from "../common/rolling.ts";
import { certificatesHash, noCredentials, readCertificates, type SetUp, setUpOnce } from "../common/setup.ts";
import { labelRole } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, ClusterState, LiveDatabase, LivePod } from "../driver.ts";
import { order, queryMember, runScript } from "./commands.ts";
import { moveEvents } from "./events.ts";
import { isServing, isSynced, type MemberState } from "./member-state.ts";
import { userConnections } from "./parameters.ts";
import { type Decision, decide, parseAccepted } from "./recovery.ts";
import { credentialsProblem, parseSetup, setupScript } from "./sql.ts";
import { candidatesOf, choosePrimary, type MemberStates, relabelled, silentPrimary } from "./topology.ts";

/** Until the next reconcile while something is in progress, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;
/**
 * How often members are queried for their state: events of pods already report one that is deleted, or not ready, as a member
 * is that is no longer in the group.
 */
const QUERY_INTERVAL_MS = 60_000;
/** A server that does not answer blocks its caller until the timeout. */
const EXEC_RETRY_MS = 10_000;
const RESYNC_INTERVAL_MS = 60_000;

/** How long running members have to find each other again before the operator intervenes. */
const STUCK_MS = 30_000;

/** How slow a primary may be that its kubelet considers ready. */
const SILENT_MS = 10_000;

/** What was done and observed. It may be lost: everything can be repeated. */
interface Memory {
  setUp?: SetUp;
  /** Since when no member serves, in milliseconds. */
  leaderlessSince?: number;
  /** Since when the primary has not answered though it is ready, in milliseconds. */
  silentSince?: number;
  /** The last refusal that an event has reported. */
  refused?: string;
  /** Serial of the certificate that each process has read, by process. */
  certificates: Map<string, string>;
}

export class MariadbClusterReconciler {
  readonly #memories = new Map<string, Memory>();

  forget(uid: string): void {
    this.#memories.delete(uid);
  }

  async reconcile(database: Database, live: LiveDatabase, context: ClusterContext): Promise<ClusterState> {
    const problem = credentialsProblem(context.credentials);
    if (problem) {
      return {
        missing: { reason: "CredentialsPending", message: problem },
        requeueAfterMs: RESYNC_INTERVAL_MS,
      };
    }
    const memory = this.#memory(database.uid);
    const memberStates = await queryMembers(live, context);
    const silent = stillWaitedFor(silentPrimary(live.pods, memberStates), memory, context);
    if (silent) {
      return { primary: silent.metadata.name, requeueAfterMs: POLL_INTERVAL_MS };
    }
    const decision = decide(groupOf(database, live, memberStates, memory, context));
    if (decision.kind !== "serve") {
      return this.#startGroup(decision, database, live, memory, context);
    }
    memory.leaderlessSince = undefined;
    memory.refused = undefined;
    // It was accepted for one refusal, and nothing is refused any more.
    await removeAcceptance(database, context);
    const primary = choosePrimary(memberStates);
    if (!primary) {
      await replaceOutdatedPod(live, context);
      return { missing: primaryMissing(database), requeueAfterMs: POLL_INTERVAL_MS };
    }
    await routeToPrimary(live, primary, memberStates, context);
    const base: ClusterState = { primary: primary.metadata.name };
    const facts = await setUp(database, primary, memory, context);
    if (!facts) {
      const message = "The database's accounts are not in place yet.";
      return { ...base, missing: { reason: "CredentialsPending", message }, requeueAfterMs: EXEC_RETRY_MS };
    }
    const reload = async (pod: LivePod) => {
      const facts = memberStates.get(pod);
      return facts?.phase === "running" && order(pod, "reload", facts.run, context);
    };
    memory.certificates = await readCertificates(live, memory.certificates, reload, context);
    const eventsRun = await moveEvents(live, primary, memberStates, context);
    const whole = live.pods.filter((pod) => isServing(memberStates.get(pod))).length >= database.instances;
    // It counts as set up once every member has joined: until then an empty one has lost nothing.
    const { credentialsHash, ...known } = facts;
    const clusterState: ClusterState = {
      ...base,
      ...known,
      certificatesHash: certificatesHash(memory.certificates),
      ...(whole || database.bootstrapped ? { credentialsHash } : {}),
    };
    if (!isReady(primary)) {
      return { ...clusterState, missing: primaryMissing(database), requeueAfterMs: POLL_INTERVAL_MS };
    }
    const requeueAfterMs = eventsRun ? QUERY_INTERVAL_MS : POLL_INTERVAL_MS;
    return {
      requeueAfterMs,
      ...clusterState,
      ...(await reconcilePods(database, live, primary, memberStates, context)),
    };
  }

  #memory(uid: string): Memory {
    const memory = this.#memories.get(uid) ?? { certificates: new Map<string, string>() };
    this.#memories.set(uid, memory);
    return memory;
  }

  /** No member serves. */
  async #startGroup(
    decision: Exclude<Decision, { kind: "serve" }>,
    database: Database,
    live: LiveDatabase,
    memory: Memory,
    context: ClusterContext,
  ): Promise<ClusterState> {
    if (decision.kind === "refuse") {
      const { reason, message } = decision.finding;
      if (memory.refused !== message) {
        context.event("Warning", reason, message);
        memory.refused = message;
      }
      return { missing: decision.finding, requeueAfterMs: EXEC_RETRY_MS };
    }
    if (decision.kind === "wait") {
      await replaceOutdatedPod(live, context);
      return { missing: decision.finding, requeueAfterMs: POLL_INTERVAL_MS };
    }
    const { member, run } = decision;
    const pod = live.pods.find((one) => ordinalOf(one) === member);
    if (pod) {
      const accepted = await order(pod, decision.order, run, context);
      context.log.info({ order: decision.order, member, accepted }, "a member of a group was given an order");
      if (accepted && decision.despite !== undefined) {
        await recordLoss(database, decision.despite, context);
      }
    }
    return { missing: primaryMissing(database), requeueAfterMs: POLL_INTERVAL_MS };
  }
}

/** A member of the part that has a majority, with nothing left to apply, has whatever any of them acknowledged. */
export async function isCaughtUp(
  database: Database,
  live: LiveDatabase,
  context: ClusterContext,
): Promise<boolean> {
  const primary = stayingPrimary(database, live);
  return primary !== undefined && isSynced(await queryMember(primary, context));
}

/** Records that an accepted loss was acted on: it is never acted on again. */
async function recordLoss(database: Database, refused: string, context: ClusterContext): Promise<void> {
  const { acceptDataLoss } = context;
  const note = `The group goes on from ${acceptDataLoss} (${annotations.acceptDataLoss}); what any instance had beyond it is given up. ${refused}`;
  context.event("Warning", "DataLossAccepted", note);
  context.log.warn({ database: database.id, acceptDataLoss, refused }, "data loss was accepted");
  await removeAcceptance(database, context);
}

async function removeAcceptance(
  { id, namespace }: Database,
  { acceptDataLoss, client, signal }: ClusterContext,
): Promise<void> {
  if (acceptDataLoss !== undefined) {
    const none = { metadata: { annotations: { [annotations.acceptDataLoss]: null } } };
    const options = { fieldManager: fieldManagers.project, signal };
    await client.patch(
      projectResource,
      { namespace, name: id },
      none as unknown as KubernetesObject,
      options,
    );
  }
}

/** Queries every member whose container runs. */
async function queryMembers(live: LiveDatabase, context: ClusterContext): Promise<MemberStates> {
  const running = live.pods.filter((pod) => startOf(pod) !== undefined);
  const asked = await Promise.all(
    running.map(
      async (pod): Promise<[LivePod, MemberState | undefined]> => [pod, await queryMember(pod, context)],
    ),
  );
  return new Map(asked.flatMap(([pod, facts]): [LivePod, MemberState][] => (facts ? [[pod, facts]] : [])));
}

/** A primary that is slow to answer stays the primary for a while: a switchover shortens no wait, and ends sessions. */
function stillWaitedFor(
  silent: LivePod | undefined,
  memory: Memory,
  { clock }: ClusterContext,
): LivePod | undefined {
  if (!silent) {
    memory.silentSince = undefined;
    return undefined;
  }
  const now = clock.now().getTime();
  memory.silentSince ??= now;
  return now - memory.silentSince < SILENT_MS ? silent : undefined;
}

function groupOf(
  { members: size, bootstrapped }: Database,
  live: LiveDatabase,
  memberStates: MemberStates,
  memory: Memory,
  { acceptDataLoss, clock, status }: ClusterContext,
) {
  const members = Array.from({ length: size }, (_, ordinal) => {
    const pod = live.pods.find((one) => ordinalOf(one) === ordinal);
    return pod && memberStates.get(pod);
  });
  const now = clock.now().getTime();
  memory.leaderlessSince ??= now;
  const stuck = now - memory.leaderlessSince >= STUCK_MS;
  return {
    members,
    bootstrapped,
    identity: status.identity,
    stuck,
    accepted: parseAccepted(acceptDataLoss),
  };
}

/** Routes clients to the primary. A new one has applied all that was acknowledged before. */
async function routeToPrimary(
  live: LiveDatabase,
  primary: LivePod,
  memberStates: MemberStates,
  context: ClusterContext,
): Promise<void> {
  const facts = memberStates.get(primary);
  for (const { pod, role } of relabelled(live.pods, primary)) {
    if (pod === primary && facts?.phase === "running") {
      await order(primary, "settle", facts.run, context);
    }
    await labelRole(pod, role, context);
  }
}

/** One step towards the wanted pods. */
function reconcilePods(
  database: Database,
  live: LiveDatabase,
  primary: LivePod,
  memberStates: MemberStates,
  context: ClusterContext,
): Promise<Partial<ClusterState>> {
  const handOver = async (from: LivePod, candidates: readonly LivePod[]) => {
    const synced = candidatesOf(memberStates).filter((pod) => isSynced(memberStates.get(pod)));
    const to = candidates.filter(isReady).find((pod) => synced.includes(pod));
    if (to) {
      const facts = memberStates.get(from);
      if (facts?.phase === "running" && facts.events) {
        await order(from, "note", facts.run, context);
      }
      await routeToPrimary(live, to, memberStates, context);
    }
    return { underWay: SWITCHING_OVER, requeueAfterMs: POLL_INTERVAL_MS };
  };
  if (ordinalOf(primary) >= database.instances) {
    const staying = live.pods.filter((pod) => ordinalOf(pod) < database.instances);
    return handOver(primary, staying);
  }
  const whenDone = () => {
    const synced = live.pods.filter((pod) => isReady(pod) && isServing(memberStates.get(pod)));
    const message = "Not every instance is in the group.";
    return synced.length >= database.instances
      ? {}
      : { missing: { reason: "ReplicasMissing", message } as const, requeueAfterMs: POLL_INTERVAL_MS };
  };
  return roll(database, live, primary, { pollMs: POLL_INTERVAL_MS, handOver, whenDone }, context);
}

/** Ensures accounts and database. @returns what the server reports; undefined when it could not be done now */
function setUp(database: Database, primary: LivePod, memory: Memory, context: ClusterContext) {
  const { credentials, status } = context;
  const connections = userConnections(database);
  const run = () => {
    const setPassword = status.credentialsHash !== database.credentialsHash;
    return runScript(primary, setupScript({ credentials, setPassword, connections }), context);
  };
  const errors = /^ERROR ([0-9]+)/gm;
  const revision = hashJson(setupScript({ credentials: noCredentials, setPassword: true, connections }));
  return setUpOnce(database, primary, memory, { run, parse: parseSetup, errors, revision }, context);
}
