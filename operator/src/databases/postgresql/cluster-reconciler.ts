/** What a running PostgreSQL cluster needs beside its objects: accounts, shared settings, switchovers, new pods in order. */

import { hashJson } from "@slipway/controller-runtime";
import { isReady, ordinalOf, primaryOf, stayingPrimary } from "../common/pods.ts";
import {
  absent,
  certificatesHash,
  heal,
  noCredentials,
  readCertificates,
  roll,
  type SetUp,
  SWITCHING_OVER,
  setUpOnce,
} from "../common/setup.ts";
import { execIn } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { LiveDatabase, LivePod, TendContext, Tended } from "../driver.ts";
import { sharedConfig } from "./config.ts";
import { accounts, paths } from "./names.ts";
import { hasStatements } from "./parameters.ts";
import { ensureSharedConfig, leaderOf, requestSwitchover, synchronousMembers } from "./patroni.ts";
import { credentialsProblem, parseSetup, setupScript } from "./sql.ts";

/** How long until something that is under way is looked at again, in milliseconds; pods wake it up before that. */
const SOON_MS = 3_000;
/** A server that does not answer holds up whoever asks it. */
const PATIENT_MS = 15_000;
const LATER_MS = 60_000;

const PSQL = ["psql", "--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"];
const AS_SUPERUSER = [...PSQL, `--host=${paths.socket}`, `--username=${accounts.superuser}`];

/** What was done, so that a settled database is asked nothing. It may be lost: everything can be done again. */
interface Memory {
  setUp?: SetUp;
  shared?: string;
  /** Serial of the certificate that each process has read, by process. */
  certificates: Map<string, string>;
}

export class PostgresqlTender {
  readonly #memories = new Map<string, Memory>();

  forget(uid: string): void {
    this.#memories.delete(uid);
  }

  async tend(database: Database, live: LiveDatabase, context: TendContext, uid: string): Promise<Tended> {
    const problem = credentialsProblem(context.credentials);
    if (problem) {
      return { missing: { reason: "CredentialsPending", message: problem }, againInMs: LATER_MS };
    }
    const memory = this.#memory(uid);
    const primary = primaryOf(live);
    if (!primary) {
      await heal(live, context);
      return { missing: absent(database), againInMs: SOON_MS };
    }
    const base: Tended = { primary: primary.metadata.name };
    if (!(await shareConfig(database, memory, context))) {
      return { ...base, missing: absent(database), againInMs: SOON_MS };
    }
    const facts = await setUp(database, primary, memory, context);
    if (!facts) {
      const message = "The database's accounts are not in place yet.";
      return { ...base, missing: { reason: "CredentialsPending", message }, againInMs: PATIENT_MS };
    }
    const reload = (pod: LivePod) => reloadSettings(pod, context);
    memory.certificates = await readCertificates(live, memory.certificates, reload, context);
    const known = { ...facts, certificatesHash: certificatesHash(memory.certificates) };
    const tended: Tended = { ...base, ...known, againInMs: LATER_MS };
    return { ...tended, ...(await move(database, live, primary, context)) };
  }

  #memory(uid: string): Memory {
    const memory = this.#memories.get(uid) ?? { certificates: new Map<string, string>() };
    this.#memories.set(uid, memory);
    return memory;
  }
}

/** Patroni elects only a member that has every acknowledged transaction; the leader of its ConfigMap is asked itself. */
export async function hasEverything(
  database: Database,
  live: LiveDatabase,
  context: TendContext,
): Promise<boolean> {
  const primary = stayingPrimary(database, live);
  if (!primary || (await leaderOf(database, context)) !== primary.metadata.name) {
    return false;
  }
  const sql = "--command=SELECT NOT pg_is_in_recovery()";
  const { exitCode, stdout } = await execIn(primary, [...AS_SUPERUSER, sql], context);
  return exitCode === 0 && stdout.trim() === "t";
}

/** One step towards the pods that should be. */
function move(
  database: Database,
  live: LiveDatabase,
  primary: LivePod,
  context: TendContext,
): Promise<Partial<Tended>> {
  const { instances } = database;
  if (ordinalOf(primary) >= instances) {
    const staying = live.pods.filter((pod) => ordinalOf(pod) < instances);
    return handOver(database, primary, staying, context);
  }
  const rolling = {
    soonMs: SOON_MS,
    handOver: (from: LivePod, to: readonly LivePod[]) => handOver(database, from, to, context),
    settled: (): Partial<Tended> =>
      live.pods.filter(isReady).length >= instances
        ? {}
        : { missing: { reason: "ReplicasMissing", message: "Not every replica follows." } },
  };
  return roll(database, live, primary, rolling, context);
}

/** Another one that has everything takes the primary's place. */
async function handOver(
  database: Database,
  from: LivePod,
  candidates: readonly LivePod[],
  context: TendContext,
): Promise<Partial<Tended>> {
  const synchronous = await synchronousMembers(database, context);
  const to = candidates.filter(isReady).find(({ metadata }) => synchronous.includes(metadata.name ?? ""));
  if (to) {
    await requestSwitchover(database, from, to, context);
  }
  return { underWay: SWITCHING_OVER, againInMs: SOON_MS };
}

async function shareConfig(database: Database, memory: Memory, context: TendContext): Promise<boolean> {
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

/** Makes sure of accounts and database. @returns what the server says; undefined when it could not be done now */
function setUp(database: Database, primary: LivePod, memory: Memory, context: TendContext) {
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

async function reloadSettings(pod: LivePod, context: TendContext): Promise<boolean> {
  const sql = "--command=SELECT pg_reload_conf()";
  const { exitCode } = await execIn(pod, [...AS_SUPERUSER, sql], context);
  return exitCode === 0;
}
