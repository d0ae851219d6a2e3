/** What every engine does once for each process: accounts and the database set up, certificates reloaded. */

import { type ExecResult, hashJson } from "@slipway/controller-runtime";
import {
  credentialKeys,
  type DatabaseCredentials,
  type DatabaseStatus,
  hashWithPassword,
} from "@slipway/crds";
import type { Database } from "../database.ts";
import type { ClusterContext, LiveDatabase, LivePod } from "../driver.ts";
import type { Cluster } from "../reconciler.ts";
import { isReady, processOf, startOf } from "./pods.ts";

/** A kubelet updates a changed Secret in pods within this time, in milliseconds. */
const MOUNTED_MS = 180_000;

/** What a set-up was done with, and what the server reported. */
export interface SetUp {
  key: string;
  version: string;
  identity: string;
}

/** What an engine remembers of it. */
export interface SetUpMemory {
  setUp?: SetUp;
  /** Serial of the certificate that each process has read, by process. */
  certificates: Map<string, string>;
}

/** How an engine sets accounts and database up. */
export interface SettingUp {
  run(): Promise<ExecResult>;
  /** Of its output; undefined when it is none of a set-up's. */
  parse(stdout: string): Omit<SetUp, "key"> | undefined;
  /** Numbers of errors, with the number as the first group: nothing else of what went wrong is safe to log. */
  errors: RegExp;
  /** Identifies the script, whatever the passwords in it: a new version of the platform may have another one. */
  revision: string;
}

/**
 * Ensures accounts and database, once for each primary's process and each content of the Secret.
 * @param memory its `setUp` is kept for the next time; the status has its key, for the operator that leads next
 * @returns what the server reports; undefined when it could not be done now
 */
export async function setUpOnce(
  database: Database,
  primary: LivePod,
  memory: Pick<SetUpMemory, "setUp">,
  { run, parse, errors, revision }: SettingUp,
  { credentials, log, status }: Pick<ClusterContext, "credentials" | "log" | "status">,
) {
  const passwords = passwordsHash(database, { credentials });
  const key = hashJson([processOf(primary), passwords, database.accountsHash, revision]);
  memory.setUp ??= rememberedIn(status);
  if (memory.setUp?.key !== key) {
    const { exitCode, stdout, stderr } = await run();
    const facts = exitCode === 0 ? parse(stdout) : undefined;
    if (!facts) {
      const codes = [...stderr.matchAll(errors)].map(([, code = ""]) => code);
      log.warn({ exitCode, errors: codes }, "a database's accounts could not be set up");
      return undefined;
    }
    memory.setUp = { key, ...facts };
  }
  const { version, identity } = memory.setUp;
  return { runningVersion: version, identity, credentialsHash: database.credentialsHash, setUpHash: key };
}

/** Hash of the passwords of the project's user that are to be in force: of the current one alone, its own. */
export function passwordsHash(
  { credentialsHash }: Pick<Database, "credentialsHash">,
  { credentials }: Pick<ClusterContext, "credentials">,
): string {
  const previous = credentials[credentialKeys.previousPassword];
  return previous === undefined
    ? credentialsHash
    : hashJson([credentialsHash, hashWithPassword(credentials, previous)]);
}

/** Whether the user's password is to be set: only when it is to be another one, or the one before it ends, for the user may have set it itself. */
export function mustSetPassword(
  { credentialsHash }: Pick<Database, "credentialsHash">,
  { credentials, status }: Pick<ClusterContext, "credentials" | "status">,
): boolean {
  return (
    status.credentialsHash !== credentialsHash ||
    status.previousPassword !== undefined ||
    credentials[credentialKeys.previousPassword] !== undefined
  );
}

/** The passwords that a user is to have, the current one first. */
export function passwordsIn(credentials: DatabaseCredentials): string[] {
  const { password, previousPassword } = credentialKeys;
  const previous = credentials[previousPassword];
  return [credentials[password] ?? "", ...(previous === undefined ? [] : [previous])];
}

/** The last set-up of an earlier leader. */
function rememberedIn({ setUpHash, runningVersion, identity }: DatabaseStatus): SetUp | undefined {
  return setUpHash === undefined || runningVersion === undefined || identity === undefined
    ? undefined
    : { key: setUpHash, version: runningVersion, identity };
}

/** Placeholders for passwords, to identify scripts by. */
export const noCredentials: DatabaseCredentials = Object.fromEntries(
  Object.values(credentialKeys).map((key) => [key, key]),
);

/**
 * A server reads its certificate when it starts and when it is reloaded: here, once a new one is mounted.
 * @param known serial of the certificate that each process has read, by process
 * @param reload reloads one; whether it succeeded
 * @returns the same, of the processes that exist now
 */
export async function readCertificates(
  live: LiveDatabase,
  known: Map<string, string>,
  reload: (pod: LivePod) => Promise<boolean>,
  { certificate, clock, status }: Pick<ClusterContext, "certificate" | "clock" | "status">,
): Promise<Map<string, string>> {
  const mountedAt = certificate.signedAt.getTime() + MOUNTED_MS;
  if (clock.now().getTime() < mountedAt) {
    return known;
  }
  const ready = live.pods.filter(isReady);
  const all = new Map(ready.map((pod) => [processOf(pod), certificate.serial]));
  if (known.size === 0 && status.certificatesHash === certificatesHash(all)) {
    return all;
  }
  const read = new Map<string, string>();
  for (const pod of ready) {
    const process = processOf(pod);
    const startedAfter = Date.parse(startOf(pod) ?? "") > mountedAt;
    if (startedAfter || known.get(process) === certificate.serial || (await reload(pod))) {
      read.set(process, certificate.serial);
    }
  }
  return read;
}

/** Reloads the servers whose certificate is another one by now. */
export async function reloadCertificates(
  { live, memory, context }: Pick<Cluster<SetUpMemory>, "live" | "memory" | "context">,
  reload: (pod: LivePod) => Promise<boolean>,
) {
  memory.certificates = await readCertificates(live, memory.certificates, reload, context);
  return { certificatesHash: certificatesHash(memory.certificates) };
}

/** Which processes have read which certificate, for `status.database.certificatesHash`. */
export function certificatesHash(read: ReadonlyMap<string, string>): string {
  return hashJson([...read].toSorted());
}
