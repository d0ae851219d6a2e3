/** PostgreSQL: Patroni keeps one of the members the primary, with its state in the cluster's own ConfigMaps. */

import { hashJson } from "@slipway/controller-runtime";
import { credentialKeys, hashWithPassword } from "@slipway/crds";
import { roles } from "../common/metadata.ts";
import { hasRole, isReady, primaryOf } from "../common/pods.ts";
import { replicasMissing } from "../common/rolling.ts";
import { noCredentials, reloadCertificates, type SetUpMemory, setUpOnce } from "../common/setup.ts";
import { execIn, labelPods } from "../common/steps.ts";
import type { ClusterContext, DatabaseDriver, LivePod } from "../driver.ts";
import { type Cluster, type ClusterSteps, clusterReconciler } from "../reconciler.ts";
import { hasStatements, sharedConfig } from "./config.ts";
import { desired } from "./manifests.ts";
import { accounts, POSTGRESQL_PORT, paths } from "./names.ts";
import { ensureSharedConfig, leaderOf, requestSwitchover, synchronousMembers } from "./patroni.ts";
import {
  credentialsProblem,
  hasReferenceAccounts,
  parseSetup,
  referenceAccountFor,
  setupScript,
} from "./sql.ts";

const PSQL = ["psql", "--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"];
const AS_SUPERUSER = [...PSQL, `--host=${paths.socket}`, `--username=${accounts.superuser}`];

interface Memory extends SetUpMemory {
  /** Hash of the settings that the members share. */
  shared?: string;
}

export function postgresqlDriver(): DatabaseDriver {
  return {
    name: "postgresql",
    port: POSTGRESQL_PORT,
    desired,
    ...clusterReconciler(steps),
    // The project's user has one password: those who connect by an account for references are served.
    canKeepPassword: ({ referenceUsername }) => referenceUsername !== undefined,
  };
}

const steps: ClusterSteps<Memory> = {
  pollIntervalMs: 3_000,
  execRetryMs: 15_000,
  newMemory: () => ({ certificates: new Map() }),
  credentialsProblem,

  /**
   * Patroni itself labels its leader's pod. A former leader whose node or Patroni hangs keeps the label: the operator takes it from that one, since
   * Services would lead to it until the node is known to be lost.
   */
  async findPrimary({ database, live, context }) {
    const labelled = live.pods.filter((pod) => hasRole(pod, roles.primary));
    const leader = labelled.length > 1 ? await leaderOf(database, context) : undefined;
    const primary = labelled.find(({ metadata }) => leader !== undefined && metadata.name === leader);
    if (!primary) {
      return { primary: primaryOf(live), memberStates: undefined };
    }
    const former = labelled.filter((pod) => pod !== primary);
    await labelPods(
      former.map((pod) => ({ pod, role: roles.replica })),
      context,
    );
    return { primary: isReady(primary) ? primary : undefined, memberStates: undefined };
  },

  async shareSettings({ database, memory, context }) {
    const wanted = hashJson(sharedConfig(database));
    if (memory.shared !== wanted && (await ensureSharedConfig(database, context))) {
      memory.shared = wanted;
    }
    return memory.shared === wanted;
  },

  async setUp(cluster, primary) {
    const facts = await setUpAccounts(cluster, primary);
    const reload = async (pod: LivePod) =>
      (await query(pod, "SELECT pg_reload_conf()", cluster.context)) !== undefined;
    return facts && { ...facts, ...(await reloadCertificates(cluster, reload)) };
  },

  /** Patroni switches over to nothing but a member that has everything. */
  async handOver({ database, context }, from, candidates) {
    const synchronous = await synchronousMembers(database, context);
    const to = candidates.filter(isReady).find(({ metadata }) => synchronous.includes(metadata.name ?? ""));
    if (to) {
      await requestSwitchover(database, from, to, context);
    }
  },

  checkMembers: ({ database, live }) =>
    live.pods.filter(isReady).length >= database.instances
      ? {}
      : { missing: replicasMissing("Not every replica follows.") },

  /** Patroni elects only a member that has every acknowledged transaction; the leader in its ConfigMap is queried to confirm it. */
  async isCaughtUp({ database, context }, primary) {
    if ((await leaderOf(database, context)) !== primary.metadata.name) {
      return false;
    }
    return (await query(primary, "SELECT NOT pg_is_in_recovery()", context)) === "t";
  },
};

/** @returns the reply; undefined when the statement failed */
async function query(pod: LivePod, sql: string, context: ClusterContext): Promise<string | undefined> {
  const { exitCode, stdout } = await execIn(pod, [...AS_SUPERUSER, `--command=${sql}`], context);
  return exitCode === 0 ? stdout.trim() : undefined;
}

async function setUpAccounts({ database, memory, context }: Cluster<Memory>, primary: LivePod) {
  const { credentials, status } = context;
  const statements = hasStatements(database.image);
  const previous = credentials[credentialKeys.previousPassword];
  const reference = referenceAccountFor(status, {
    wantedHash: database.credentialsHash,
    previousHash: previous === undefined ? undefined : hashWithPassword(credentials, previous),
  });
  const run = () => {
    // A previous one is of the accounts for references alone.
    const setPassword = status.credentialsHash !== database.credentialsHash;
    const script = setupScript({ credentials, setPassword, reference, statements });
    return execIn(primary, [...AS_SUPERUSER, "--dbname=postgres", "--file=-"], context, script);
  };
  // Five characters each.
  const errors = /(?:ERROR|FATAL|PANIC): {2}([0-9A-Z]{5})$/gm;
  const same = {
    credentials: noCredentials,
    setPassword: true,
    reference: "",
    statements,
    verifierOf: (text: string) => text,
  };
  const revision = hashJson(setupScript(same));
  const facts = await setUpOnce(
    database,
    primary,
    memory,
    { run, parse: parseSetup, errors, revision },
    context,
  );
  return facts && hasReferenceAccounts(facts.runningVersion)
    ? { ...facts, referenceUsername: reference }
    : facts;
}
