/** What tending comes to for every engine: findings in the same words, new pods in order, accounts and certificates once. */

import { type ExecResult, hashJson } from "@slipway/controller-runtime";
import { credentialKeys, type DatabaseCredentials, type DatabaseStatus } from "@slipway/crds";
import type { Finding } from "../../projects/status.ts";
import type { Database } from "../database.ts";
import type { LiveDatabase, LivePod, TendContext, Tended } from "../driver.ts";
import { isReady, ordinalOf, processOf, startOf } from "./pods.ts";
import { nextRollStep } from "./rolling.ts";
import { deletePod } from "./steps.ts";

/** A kubelet brings a Secret that has changed into pods within this time, in milliseconds. */
const MOUNTED_MS = 180_000;

export const ROLLING_OUT = {
  reason: "RollingOut",
  message: "Instances are being made anew, one at a time.",
} as const satisfies Finding;

export const SWITCHING_OVER = {
  reason: "SwitchingOver",
  message: "Another instance takes over as primary.",
} as const satisfies Finding;

/** That nobody takes writes: not yet, or not any more. */
export function absent({ bootstrapped }: Pick<Database, "bootstrapped">) {
  return bootstrapped
    ? ({ reason: "PrimaryMissing", message: "No instance takes writes." } as const)
    : ({ reason: "Bootstrapping", message: "The database is being set up." } as const);
}

/** Nobody takes writes: a pod that is made from something else, and does not work, may be why. */
export async function heal(live: LiveDatabase, context: TendContext): Promise<void> {
  const step = nextRollStep(live, undefined, live.pods.length);
  if (step.kind === "delete") {
    await deletePod(step.pod, context);
  }
}

/** What of new pods each engine does in its own way. */
export interface Rolling {
  /** Milliseconds until the next step is looked at. */
  soonMs: number;
  /** Has one of these take the primary's place. */
  handOver(from: LivePod, to: readonly LivePod[]): Promise<Partial<Tended>>;
  /** Every pod is made from what it should be. */
  settled(): Partial<Tended>;
}

/** One step towards the pods that should be. */
export async function roll(
  { replicas, instances }: Pick<Database, "replicas" | "instances">,
  live: LiveDatabase,
  primary: LivePod,
  { soonMs, handOver, settled }: Rolling,
  context: TendContext,
): Promise<Partial<Tended>> {
  const step = nextRollStep(live, primary, replicas);
  switch (step.kind) {
    case "delete":
      await deletePod(step.pod, context);
      return { underWay: ROLLING_OUT, againInMs: soonMs };
    case "switchover": {
      // One that is to be stopped takes no primary's place.
      const to = step.to.filter((pod) => ordinalOf(pod) < instances);
      return to.length > 0 ? handOver(step.from, to) : { underWay: ROLLING_OUT, againInMs: soonMs };
    }
    case "wait":
      return { underWay: ROLLING_OUT, againInMs: soonMs };
    case "settled":
      return settled();
  }
}

/** What a set-up was done with, and what the server said then. */
export interface SetUp {
  key: string;
  version: string;
  identity: string;
}

/** How an engine sets accounts and database up. */
export interface SettingUp {
  run(): Promise<ExecResult>;
  /** Of its output; undefined when it is none of a set-up's. */
  parse(stdout: string): Omit<SetUp, "key"> | undefined;
  /** Numbers of errors, with the number as the first group: nothing else of what went wrong is safe to log. */
  errors: RegExp;
  /** Tells one script from another, whatever the passwords in it: a new version of the platform may have another one. */
  revision: string;
}

/**
 * Makes sure of accounts and database, once for each primary's process and each content of the Secret.
 * @param memory its `setUp` is kept for the next time; the status has its key, for the operator that leads next
 * @returns what the server says; undefined when it could not be done now
 */
export async function setUpOnce(
  database: Database,
  primary: LivePod,
  memory: { setUp?: SetUp },
  { run, parse, errors, revision }: SettingUp,
  { log, status }: Pick<TendContext, "log" | "status">,
) {
  const hash = database.credentialsHash;
  const key = hashJson([processOf(primary), hash, database.accountsHash, revision]);
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
  return { runningVersion: version, identity, credentialsHash: hash, setUpHash: key };
}

/** What an earlier leader did last. */
function rememberedIn({ setUpHash, runningVersion, identity }: DatabaseStatus): SetUp | undefined {
  return setUpHash === undefined || runningVersion === undefined || identity === undefined
    ? undefined
    : { key: setUpHash, version: runningVersion, identity };
}

/** Passwords that are none, to tell scripts apart by. */
export const noCredentials: DatabaseCredentials = Object.fromEntries(
  Object.values(credentialKeys).map((key) => [key, key]),
);

/**
 * A server reads its certificate when it starts and when it is told to: here, once a new one is mounted.
 * @param known serial of the certificate that each process has read, by process
 * @param reload tells one to; whether it has
 * @returns the same, of the processes that are there now
 */
export async function readCertificates(
  live: LiveDatabase,
  known: Map<string, string>,
  reload: (pod: LivePod) => Promise<boolean>,
  { certificate, clock, status }: Pick<TendContext, "certificate" | "clock" | "status">,
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

/** Which processes have read which certificate, for `status.database.certificatesHash`. */
export function certificatesHash(read: ReadonlyMap<string, string>): string {
  return hashJson([...read].toSorted());
}
