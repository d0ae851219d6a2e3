/** The part of a database's reconcile that works with its running members: release, the driver's steps, and a restore. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { annotations, credentialsHash, type DatabaseCredentials, type Project } from "@slipway/crds";
import type { Restorer } from "../backups/restore.ts";
import { type KindDependencies, type ProjectContext, shortestDelay } from "../projects/kind.ts";
import type { GrowthObstacle } from "../workload/pvc.ts";
import type { MemberAccess } from "./common/member-access.ts";
import type { Credentials } from "./credentials.ts";
import type { Database } from "./database.ts";
import type { ClusterContext, ClusterState, DatabaseDriver, LiveDatabase } from "./driver.ts";
import {
  PASSWORD_ENDS,
  PREVIOUS_PASSWORD_POLL_MS,
  planPasswords,
  statusWithKept,
} from "./previous-password.ts";
import { releaseMembers } from "./release.ts";
import type { DatabasePlatform } from "./settings.ts";
import type { Authority } from "./tls/authority.ts";
import type { Certificate } from "./tls/secret.ts";

/** What one reconcile has applied. */
export interface Applied {
  database: Database;
  credentials: DatabaseCredentials;
  certificate: Certificate;
  obstacle?: GrowthObstacle;
}

export interface ClusterDependencies extends Pick<KindDependencies, "client" | "clock" | "wake"> {
  platform: DatabasePlatform;
  authority: Authority;
  restorer: Pick<Restorer, "restore">;
  /** Which members commands are run in. */
  members: MemberAccess;
}

/** What one kind of database has beside them. */
export interface ClusterKind {
  driver: DatabaseDriver;
  secrets: Pick<Credentials, "changeEarlier">;
  /** Whether something may still be started, or runs, with a password of the database, by its keyed hash. */
  isPasswordUsed(hash: string): Promise<boolean>;
  /** Records an object that was written in its store. */
  observe(written: KubernetesObject): void;
}

/** A database that is restored from a backup is not ready before that is loaded. */
export async function reconcileAndRestore(
  project: Project,
  applied: Applied,
  live: LiveDatabase,
  context: ProjectContext,
  deps: ClusterDependencies & ClusterKind,
): Promise<ClusterState> {
  const { status, signal } = context;
  const clusterState = await reconcileMembers(project, applied, live, context, deps);
  if (clusterState.primary === undefined || clusterState.credentialsHash === undefined) {
    return clusterState;
  }
  status.database ??= {};
  const filling = await deps.restorer.restore(project, applied.database, status.database, signal);
  return filling
    ? {
        ...clusterState,
        missing: filling.missing,
        requeueAfterMs: shortestDelay(clusterState.requeueAfterMs, filling.requeueAfterMs),
      }
    : clusterState;
}

async function reconcileMembers(
  project: Project,
  { database, credentials, certificate }: Applied,
  live: LiveDatabase,
  { status, log, signal, event }: ProjectContext,
  {
    authority,
    client,
    clock,
    driver,
    isPasswordUsed,
    members,
    observe,
    platform,
    secrets,
    wake,
  }: ClusterDependencies & ClusterKind,
): Promise<ClusterState> {
  const { namespace, name } = project.metadata;
  const before = status.database ?? {};
  const passwords = await planPasswords(credentials, {
    isUsed: (hash) => isPasswordUsed(hash).catch((error: unknown) => usedInDoubt(error, signal, log)),
    now: clock.now(),
    keepMs: driver.canKeepPassword?.(before) === false ? 0 : platform.previousPasswordMs,
  });
  const context: ClusterContext = {
    client: members.clientFor(client, live),
    queryMember: (pod, query) => members.run(pod, query),
    clock,
    authority: (await authority.current()).certificate,
    log,
    signal,
    credentials: passwords.credentials,
    certificate,
    status: statusWithKept(before, credentials),
    acceptDataLoss: project.metadata.annotations?.[annotations.acceptDataLoss],
    event,
    wake: () => wake({ namespace, name }),
  };
  const { volumeGraceMs } = platform;
  // Before anything that may restart the primary: it has to answer.
  const releaseInMs = await releaseMembers(database, live, driver, { ...context, volumeGraceMs, observe });
  const clusterState = await driver.reconcile(database, live, context);
  const { previous, change, ended } = passwords;
  if (change && clusterState.credentialsHash === credentialsHash(credentials)) {
    await secrets.changeEarlier(project, change, signal);
    // After the write: one that conflicts is repeated.
    if (ended) {
      const { type, note } = PASSWORD_ENDS[ended];
      event(type, ended === "expired" ? "PreviousPasswordExpired" : "PreviousPasswordRevoked", note);
    }
  }
  const checkInMs =
    previous && Math.min(PREVIOUS_PASSWORD_POLL_MS, Date.parse(previous.until) - clock.now().getTime());
  return {
    ...clusterState,
    ...(previous ? { previousPassword: { until: previous.until } } : {}),
    requeueAfterMs: shortestDelay(clusterState.requeueAfterMs, releaseInMs, checkInMs),
  };
}

/** A password is used as long as it is not known: its time is limited, and a failover does not wait for the answer. @throws once it is aborted */
function usedInDoubt(error: unknown, signal: AbortSignal, log: ProjectContext["log"]): true {
  if (signal.aborted) {
    throw error;
  }
  log.warn({ err: error }, "whether something uses a previous password could not be read");
  return true;
}
