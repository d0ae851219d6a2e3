/** Reconciles running ClickHouse servers: role labels, database, accounts, rolling updates. */

import { randomBytes } from "node:crypto";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { podProblem } from "../../applications/rollout.ts";
import { CONTAINER } from "../common/pod.ts";
import { isReady, ordinalOf, processOf, stayingPrimary } from "../common/pods.ts";
import { primaryMissing, ROLLING_OUT, replaceOutdatedPod, roll } from "../common/rolling.ts";
import { labelRole } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, ClusterState, LiveDatabase, LivePod } from "../driver.ts";
import { query, type Server, StatementError } from "./http-client.ts";
import { accounts, HTTPS_PORT, isReplicated, serverAddress } from "./names.ts";
import {
  BEHIND,
  credentialsProblem,
  databaseStatement,
  forgetStatements,
  membersStatement,
  READ_ONLY,
  serverNames,
  userStatements,
  VERSION,
} from "./sql.ts";
import { choosePrimary, relabelled } from "./topology.ts";

/** Until the next reconcile while something is in progress, in milliseconds; events of pods trigger one earlier. */
const POLL_INTERVAL_MS = 2_000;
/** A server that does not answer blocks its caller until the timeout. */
const EXEC_RETRY_MS = 10_000;
/** How often several servers are queried for whether they reach their Keepers. */
const QUERY_INTERVAL_MS = 20_000;
const RESYNC_INTERVAL_MS = 60_000;

/** What was done, so that an unchanged database is queried for nothing. It may be lost: everything can be repeated. */
interface Memory {
  /** What each process was set up with, by process. */
  setUp: Map<string, string>;
  /** Version of the primary's process. */
  version?: { process: string; text: string };
}

/** Sends statements to a server; replaced in tests. */
export type Query = typeof query;

export class ClickHouseClusterReconciler {
  readonly #query: Query;
  readonly #memories = new Map<string, Memory>();

  constructor(send: Query = query) {
    this.#query = send;
  }

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
    const primary = choosePrimary(live.pods, database.instances);
    for (const { pod, role } of relabelled(live.pods, primary)) {
      await labelRole(pod, role, context);
    }
    if (!primary) {
      await replaceOutdatedPod(live, context);
      return { ...noneServes(database, live), requeueAfterMs: POLL_INTERVAL_MS };
    }
    const base: ClusterState = { primary: primary.metadata.name };
    const runningVersion = await this.#setUp(database, live, primary, context);
    if (runningVersion === undefined) {
      const message = "The database's accounts are not in place yet.";
      return { ...base, missing: { reason: "CredentialsPending", message }, requeueAfterMs: EXEC_RETRY_MS };
    }
    const credentialsHash = database.credentialsHash;
    const clusterState: ClusterState = {
      ...base,
      runningVersion,
      credentialsHash,
      requeueAfterMs: RESYNC_INTERVAL_MS,
    };
    const routine = isReplicated(database)
      ? await this.#checkReplication(database, live, primary, context)
      : {};
    return { ...clusterState, ...routine, ...(await reconcilePods(database, live, primary, context)) };
  }

  /** The primary has fetched all that other servers have acknowledged. */
  async isCaughtUp(database: Database, live: LiveDatabase, context: ClusterContext): Promise<boolean> {
    const primary = stayingPrimary(database, live);
    if (!primary) {
      return false;
    }
    const [behind] = await this.#queryServer(database, primary, [BEHIND], context);
    return behind === "0";
  }

  /** A server on a node that is not ready is not queried, and few concurrently of those that did not answer before. */
  async #queryServer(
    database: Database,
    pod: LivePod,
    statements: readonly string[],
    context: ClusterContext,
  ): Promise<string[]> {
    const server = await serverOf(database, pod, context);
    return context.queryMember(pod, () => this.#query(server, statements, context.signal));
  }

  #memory(uid: string): Memory {
    const memory = this.#memories.get(uid) ?? { setUp: new Map<string, string>() };
    this.#memories.set(uid, memory);
    return memory;
  }

  /**
   * Ensures the database on every server that serves, and of the user on one, once for each process and each
   * content of the Secret.
   * @returns the server's version; undefined when it could not be done now
   */
  async #setUp(
    database: Database,
    live: LiveDatabase,
    primary: LivePod,
    context: ClusterContext,
  ): Promise<string | undefined> {
    const memory = this.#memory(database.uid);
    const before = memory.setUp;
    memory.setUp = new Map();
    const key = [database.credentialsHash, database.accountsHash].join("/");
    const others = live.pods.filter((pod) => pod !== primary && isReady(pod));
    for (const pod of [primary, ...others]) {
      const process = processOf(pod);
      const wanted = pod === primary ? `${key}/user` : key;
      if (
        before.get(process) !== wanted &&
        !(await this.#setUpOne(database, pod, primary, memory, context))
      ) {
        return undefined;
      }
      memory.setUp.set(process, wanted);
    }
    return memory.version?.process === processOf(primary) ? memory.version.text : undefined;
  }

  async #setUpOne(
    database: Database,
    pod: LivePod,
    primary: LivePod,
    memory: Memory,
    context: ClusterContext,
  ): Promise<boolean> {
    const { credentials, log, status } = context;
    const setPassword = status.credentialsHash !== database.credentialsHash;
    const salt = randomBytes(16).toString("hex");
    const statements = [
      databaseStatement(database, credentials),
      ...(pod === primary ? [...userStatements(credentials, { setPassword, salt }), VERSION] : []),
    ];
    try {
      const answers = await this.#queryServer(database, pod, statements, context);
      if (pod === primary) {
        memory.version = { process: processOf(pod), text: answers.at(-1) ?? "" };
      }
      return true;
    } catch (error) {
      // A server's message about a statement may repeat it.
      const { status, code } = error instanceof StatementError ? error : {};
      const reason = error instanceof StatementError ? undefined : (error as NodeJS.ErrnoException).code;
      log.warn({ pod: pod.metadata.name, status, code, reason }, "a database could not be set up");
      return false;
    }
  }

  /** Several servers: whether they reach their Keepers, and which deleted servers they still wait for. */
  async #checkReplication(
    database: Database,
    { claims }: LiveDatabase,
    primary: LivePod,
    context: ClusterContext,
  ): Promise<Partial<ClusterState>> {
    const { credentials } = context;
    try {
      const statements = [READ_ONLY, membersStatement(credentials)];
      const [readOnly, members = ""] = await this.#queryServer(database, primary, statements, context);
      const forgotten = forgetStatements(members, credentials, serverNames(database));
      // One whose volume still exists may return.
      const deleted = claims.every((claim) => ordinalOf(claim) < database.instances);
      if (forgotten.length > 0 && deleted && database.members === database.instances) {
        await this.#queryServer(database, primary, forgotten, context);
      }
      return readOnly === "0"
        ? { requeueAfterMs: QUERY_INTERVAL_MS }
        : {
            missing: {
              reason: "Recovering",
              message: "Tables take no writes until the Keepers agree again.",
            },
            requeueAfterMs: EXEC_RETRY_MS,
          };
    } catch (error) {
      const { code } = error as { code?: string };
      context.log.warn({ pod: primary.metadata.name, code }, "a database's replication could not be checked");
      return { requeueAfterMs: EXEC_RETRY_MS };
    }
  }
}

/** The connection to a server: its pod's address as it is now. */
async function serverOf(
  database: Database,
  { metadata }: LivePod,
  { authority, client, credentials, signal }: ClusterContext,
): Promise<Server> {
  const { namespace, name = "" } = metadata;
  type Pod = KubernetesObject & { status?: { podIP?: string } };
  const pod = await client.getOrUndefined<Pod>(resources.pods, { namespace, name }, { signal });
  if (!pod?.status?.podIP || pod.metadata?.uid !== metadata.uid) {
    throw Object.assign(new Error("the pod is gone"), { code: "GONE" });
  }
  return {
    ip: pod.status.podIP,
    port: HTTPS_PORT,
    name: serverAddress(database, name),
    authority,
    user: accounts.admin,
    password: credentials["superuser-password"] ?? "",
  };
}

/** One step towards the wanted pods. */
function reconcilePods(
  database: Database,
  live: LiveDatabase,
  primary: LivePod,
  context: ClusterContext,
): Promise<Partial<ClusterState>> {
  const { instances } = database;
  const handOver = async (from: LivePod, candidates: readonly LivePod[]) => {
    const to = candidates.find((pod) => isReady(pod) && ordinalOf(pod) < instances);
    await labelRole(from, "replica", context);
    if (to) {
      await labelRole(to, "primary", context);
    }
    return { underWay: ROLLING_OUT, requeueAfterMs: POLL_INTERVAL_MS };
  };
  const whenDone = (): Partial<ClusterState> =>
    live.pods.filter(isReady).length >= instances
      ? {}
      : { missing: { reason: "ReplicasMissing", message: "Not every instance serves." } };
  return roll(database, live, primary, { pollMs: POLL_INTERVAL_MS, handOver, whenDone }, context);
}

/** An instance that is being replaced is no fault, though clients cannot write meanwhile. */
function noneServes(database: Database, { pods }: LiveDatabase): Pick<ClusterState, "missing" | "underWay"> {
  const missing = primaryMissing(database);
  const starting =
    database.bootstrapped &&
    pods.every(
      (pod) => pod.metadata.deletionTimestamp !== undefined || podProblem(pod, CONTAINER) === undefined,
    );
  return starting
    ? { missing, underWay: { reason: "RollingOut", message: "An instance is being started." } }
    : { missing };
}
