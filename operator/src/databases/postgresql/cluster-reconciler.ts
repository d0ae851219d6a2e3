/** Reconciles a running PostgreSQL cluster: accounts, shared settings, switchovers, rolling updates. */

import { hashJson } from "@slipway/controller-runtime";
import { isReady, ordinalOf, primaryOf, stayingPrimary } from "../common/pods.ts";
import { primaryMissing, replaceOutdatedPod, roll, SWITCHING_OVER } from "../common/rolling.ts";
import { certificatesHash, noCredentials, readCertificates, type SetUp, setUpOnce } from "../common/setup.ts";
import { execIn } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, ClusterState, LiveDatabase, LivePod } from "../driver.ts";
import { sharedConfig } from "./config.ts";
import { accounts, paths } from "./names.ts";
import { hasStatements } from "./parameters.ts";
import { ensureSharedConfig, leaderOf, requestSwitchover, synchronousMembers } from "./patroni.ts";
import { credentialsProblem, parseSetup, setupScript } from "./sql.ts";

/** Until the next reconcile while something is in progress, in milliseconds; events of pods trigger one earlier. */
const POLL_INTERVAL_MS = 3_000;
/** A server that does not answer blocks its caller until the timeout. */
const EXEC_RETRY_MS = 15_000;
const RESYNC_INTERVAL_MS = 60_000;

const PSQL = ["psql", "--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"];
const AS_SUPERUSER = [...PSQL, `--host=${paths.socket}`, `--username=${accounts.superuser}`];

/** What was done, so that an unchanged database is queried for nothing. It may be lost: everything can be repeated. */
interface Memory {
  setUp?: SetUp;
  shared?: string;
  /** Serial of the certificate that each process has read, by process. */
  certificates: Map<string, string>;
}

export class PostgresqlClusterReconciler {
  readonly #memories = new Map<string, Memory>();

  forget(uid: string): void {
    this.#memories.delete(uid);
  }

  async reconcile(
    database: Database,
    live: LiveDatabase,
    context: ClusterContext,
    uid: string,
  ): Promise<ClusterState> {
    const problem = credentialsProblem(context.credentials);
    if (problem) {
      return {
        missing: { reason: "CredentialsPending", message: problem },
        requeueAfterMs: RESYNC_INTERVAL_MS,
      };
    }
    const memory = this.#memory(uid);
    const primary = primaryOf(live);
    if (!primary) {
      await replaceOutdatedPod(live, context);
      return { missing: primaryMissing(database), requeueAfterMs: POLL_INTERVAL_MS };
    }
    const base: ClusterState = { primary: primary.metadata.name };
    if (!(await shareConfig(database, memory, context))) {
      return { ...base, missing: primaryMissing(database), requeueAfterMs: POLL_INTERVAL_MS };
    }
    const facts = await setUp(database, primary, memory, context);
    if (!facts) {
      const message = "The database's accounts are not in place yet.";
      return { ...base, missing: { reason: "CredentialsPending", message }, requeueAfterMs: EXEC_RETRY_MS };
    }
    const reload = (pod: LivePod) => reloadSettings(pod, context);
    memory.certificates = await readCertificates(live, memory.certificates, reload, context);
    const known = { ...facts, certificatesHash: certificatesHash(memory.certificates) };
    const clusterState: ClusterState = { ...base, ...known, requeueAfterMs: RESYNC_INTERVAL_MS };
    return { ...clusterState, ...(await reconcilePods(database, live, primary, context)) };
  }

  #memory(uid: string): Memory {
    const memory = this.#memories.get(uid) ?? { certificates: new Map<string, string>() };
    this.#memories.set(uid, memory);
    return memory;
  }
}

/** Patroni elects only a member that has every acknowledged transaction; the leader in its ConfigMap is queried to confirm it. */
export async function isCaughtUp(
  database: Database,
  live: LiveDatabase,
  context: ClusterContext,
): Promise<boolean> {
  const primary = stayingPrimary(database, live);
  if (!primary || (await leaderOf(database, context)) !== primary.metadata.name) {
    return false;
  }
  const sql = "--command=SELECT NOT pg_is_in_recovery()";
  const { exitCode, stdout } = await execIn(primary, [...AS_SUPERUSER, sql], context);
  return exitCode === 0 && stdout.trim() === "t";
}

/** One step towards the wanted pods. */
function reconcilePods(
  database: Database,
  live: LiveDatabase,
  primary: LivePod,
  context: ClusterContext,
): Promise<Partial<ClusterState>> {
  const { instances } = database;
  if (ordinalOf(primary) >= instances) {
    const staying = live.pods.filter((pod) => ordinalOf(pod) < instances);
    return handOver(database, primary, staying, context);
  }
  const rolling = {
    pollMs: POLL_INTERVAL_MS,
    handOver: (from: LivePod, to: readonly LivePod[]) => handOver(database, from, to, context),
    whenDone: (): Partial<ClusterState> =>
      live.pods.filter(isReady).length >= instances
        ? {}
        : { missing: { reason: "ReplicasMissing", message: "Not every replica follows." } },
  };
  return roll(database, live, primary, rolling, context);
}

/** Switches over to another member that has everything. */
async function handOver(
  database: Database,
  from: LivePod,
  candidates: readonly LivePod[],
  context: ClusterContext,
): Promise<Partial<ClusterState>> {
  const synchronous = await synchronousMembers(database, context);
  const to = candidates.filter(isReady).find(({ metadata }) => synchronous.includes(metadata.name ?? ""));
  if (to) {
    await requestSwitchover(database, from, to, context);
  }
  return { underWay: SWITCHING_OVER, requeueAfterMs: POLL_INTERVAL_MS };
}

async function shareConfig(database: Database, memory: Memory, context: ClusterContext): Promise<boolean> {
  const wanted = hashJson(sharedConfig(database));
  if (memory.shared === wanted) {
    return true;
  }
  if (!(await ensureSharedConfig(database, context))) {
    return false;
  }
  memory.shared = wanted;
  return true;
}

/** Ensures accounts and database. @returns what the server reports; undefined when it could not be done now */
function setUp(database: Database, primary: LivePod, memory: Memory, context: ClusterContext) {
  const { credentials, status } = context;
  const statements = hasStatements(database.image);
  const run = () => {
    const setPassword = status.credentialsHash !== database.credentialsHash;
    const script = setupScript({ credentials, setPassword, statements });
    return execIn(primary, [...AS_SUPERUSER, "--dbname=postgres", "--file=-"], context, script);
  };
  // Five characters each.
  const errors = /(?:ERROR|FATAL|PANIC): {2}([0-9A-Z]{5})$/gm;
  const same = {
    credentials: noCredentials,
    setPassword: true,
    statements,
    verifierOf: (text: string) => text,
  };
  const revision = hashJson(setupScript(same));
  return setUpOnce(database, primary, memory, { run, parse: parseSetup, errors, revision }, context);
}

async function reloadSettings(pod: LivePod, context: ClusterContext): Promise<boolean> {
  const sql = "--command=SELECT pg_reload_conf()";
  const { exitCode } = await execIn(pod, [...AS_SUPERUSER, sql], context);
  return exitCode === 0;
}
