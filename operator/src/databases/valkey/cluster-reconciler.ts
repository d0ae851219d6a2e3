/** What running Valkey instances need beside their objects: role labels, passwords, a primary to follow, new pods in order. */

import { isReady, ordinalOf, processOf, startOf, stayingPrimary } from "../common/pods.ts";
import { absent, heal, roll, SWITCHING_OVER } from "../common/setup.ts";
import { labelRole } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { LiveDatabase, LivePod, TendContext, Tended } from "../driver.ts";
import { credentialsProblem } from "./accounts.ts";
import { accountCommand, ask, follow, priorityCommand, switchOver } from "./commands.ts";
import type { Facts } from "./facts.ts";
import { sizeOf } from "./names.ts";
import { Hearing } from "./sentinel-subscription.ts";
import { type Answers, choosePrimary, detached, relabelled, silentPrimary } from "./topology.ts";

/** How long until something that is under way is looked at again, in milliseconds. */
const SOON_MS = 1_000;
/** How often several instances are asked who the primary is while their Sentinels would not tell. */
const UNHEARD_MS = 10_000;
const LATER_MS = 60_000;

/** Sentinels have this long to make an instance follow the primary by themselves, while they replace one above all. */
const DETACHED_MS = 20_000;

/** How long others are waited for once one has said that it is the primary, and is followed. */
const STRAGGLERS_MS = 2_000;

/** What was done and seen. It may be lost: everything can be done again. */
interface Memory {
  /** Credentials that each process has taken over, by process. */
  accounts: Map<string, string>;
  /** Since when each process has not followed the primary, in milliseconds. */
  detached: Map<string, number>;
  hearing: Hearing;
}

export class ValkeyTender {
  readonly #memories = new Map<string, Memory>();

  forget(uid: string): void {
    this.#memories.get(uid)?.hearing.end();
    this.#memories.delete(uid);
  }

  async tend(database: Database, live: LiveDatabase, context: TendContext): Promise<Tended> {
    const problem = credentialsProblem(context.credentials);
    if (problem) {
      return { missing: { reason: "CredentialsPending", message: problem }, againInMs: LATER_MS };
    }
    const memory = this.#memory(database.uid);
    const answers = await askAll(database, live, memory, context);
    const primary = choosePrimary(database, answers) ?? silentPrimary(live.pods, answers);
    for (const { pod, role } of relabelled(live.pods, primary, answers)) {
      await labelRole(pod, role, context);
    }
    await attach(database, primary, answers, memory, context);
    if (!primary || !isReady(primary)) {
      await heal(live, context);
      return { missing: absent(database), againInMs: SOON_MS };
    }
    const tended: Tended = {
      primary: primary.metadata.name,
      runningVersion: answers.get(primary)?.version ?? context.status.runningVersion,
      credentialsHash: takenOver(database, live, memory) ? database.credentialsHash : undefined,
      againInMs: LATER_MS,
    };
    if (sizeOf(database) > 1 && !memory.hearing.listen(database, primary, live.pods, context)) {
      tended.againInMs = UNHEARD_MS;
    }
    if (tended.credentialsHash === undefined || !answers.has(primary)) {
      tended.againInMs = SOON_MS;
    }
    return { ...tended, ...(await move(database, live, primary, answers, context)) };
  }

  #memory(uid: string): Memory {
    const memory = this.#memories.get(uid) ?? {
      accounts: new Map(),
      detached: new Map(),
      hearing: new Hearing(),
    };
    this.#memories.set(uid, memory);
    return memory;
  }
}

/**
 * Whoever serves as the primary is the one whose data count. Every instance that runs has to say so, too: while one of them
 * believes otherwise, or says nothing, another one may be taking over.
 */
export async function hasEverything(
  database: Database,
  live: LiveDatabase,
  context: TendContext,
): Promise<boolean> {
  const primary = stayingPrimary(database, live);
  const running = live.pods.filter((pod) => startOf(pod) !== undefined);
  const answers = new Map<LivePod, Facts>();
  await Promise.all(
    running.map(async (pod) => {
      const facts = await ask(pod, [], context);
      if (facts) {
        answers.set(pod, facts);
      }
    }),
  );
  return (
    primary !== undefined &&
    answers.size === running.length &&
    answers.get(primary)?.role === "primary" &&
    detached(database, primary, answers).length === 0
  );
}

/** Asks every running instance what it is, and gives it the project's password where it has not got it. */
async function askAll(
  database: Database,
  live: LiveDatabase,
  memory: Memory,
  context: TendContext,
): Promise<Answers> {
  const hash = database.credentialsHash;
  const running = live.pods.filter((pod) => startOf(pod) !== undefined && !pod.metadata.deletionTimestamp);
  const known = memory.accounts;
  memory.accounts = new Map();
  const enough = new AbortController();
  let giveUp: NodeJS.Timeout | undefined;
  const asked = await Promise.all(
    running.map(async (pod): Promise<[LivePod, Facts | undefined]> => {
      const process = processOf(pod);
      const has = known.get(process);
      const account = has === hash ? undefined : accountCommand(context.credentials);
      const first = await ask(pod, [account], context, enough.signal);
      const priority = first && priorityCommand(database, pod, first);
      const facts = priority ? await ask(pod, [priority], context, enough.signal) : first;
      if (facts?.role === "primary" && facts.followers > 0) {
        giveUp ??= setTimeout(() => enough.abort(), STRAGGLERS_MS);
      }
      const now = first ? hash : has;
      if (now !== undefined) {
        memory.accounts.set(process, now);
      }
      return [pod, facts];
    }),
  );
  clearTimeout(giveUp);
  return new Map(asked.flatMap(([pod, facts]): [LivePod, Facts][] => (facts ? [[pod, facts]] : [])));
}

/** Whether every instance that serves has the project's password. */
function takenOver(database: Database, live: LiveDatabase, { accounts }: Memory): boolean {
  return live.pods.filter(isReady).every((pod) => accounts.get(processOf(pod)) === database.credentialsHash);
}

/** Whoever has not followed the primary for long enough is told to. */
async function attach(
  database: Database,
  primary: LivePod | undefined,
  answers: Answers,
  memory: Memory,
  context: TendContext,
): Promise<void> {
  const now = context.clock.now().getTime();
  const before = memory.detached;
  memory.detached = new Map();
  for (const pod of detached(database, primary, answers)) {
    const process = processOf(pod);
    const since = before.get(process) ?? now;
    memory.detached.set(process, since);
    if (primary && now - since >= DETACHED_MS) {
      await follow(database, pod, primary, context);
    }
  }
}

/** One step towards the pods that should be. */
function move(
  database: Database,
  live: LiveDatabase,
  primary: LivePod,
  answers: Answers,
  context: TendContext,
): Promise<Partial<Tended>> {
  const { instances } = database;
  if (ordinalOf(primary) >= instances) {
    const staying = live.pods.filter((pod) => ordinalOf(pod) < instances);
    return handOver(staying, context);
  }
  const rolling = {
    soonMs: SOON_MS,
    handOver: (_from: LivePod, to: readonly LivePod[]) => handOver(to, context),
    settled: (): Partial<Tended> =>
      following(database, live, primary, answers)
        ? {}
        : {
            missing: { reason: "ReplicasMissing", message: "Not every replica follows." },
            againInMs: SOON_MS,
          },
  };
  return roll(database, live, primary, rolling, context);
}

function following(
  { instances }: Database,
  { pods }: LiveDatabase,
  primary: LivePod,
  answers: Answers,
): boolean {
  const facts = answers.get(primary);
  // Not to be told is not to be told that they do not.
  const followed = !facts || facts.followers >= instances - 1;
  return followed && pods.filter(isReady).length >= instances;
}

/** A replica takes the primary's place; its Sentinel sees to it. */
async function handOver(candidates: readonly LivePod[], context: TendContext): Promise<Partial<Tended>> {
  const to = candidates.find(isReady);
  if (to) {
    const answer = await switchOver(to, context);
    if (answer !== "OK") {
      context.log.warn({ answer }, "a Sentinel does not move a primary");
    }
  }
  return { underWay: SWITCHING_OVER, againInMs: SOON_MS };
}
