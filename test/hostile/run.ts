/** A whole run: the idle platform, every attack, all of them concurrently. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { createOrganization } from "../e2e/support/organization.ts";
import { stack } from "../e2e/support/stack.ts";
import { type Answers, type Attack, Tally, type Target } from "./attack.ts";
import { Observer } from "./observe.ts";
import { type Attacker, startAttacker } from "./processes.ts";
import type { Results, Row } from "./report.ts";
import { type Kind, kinds, type Seen, summarize, type Window } from "./samples.ts";
import { startVictim, type Victim } from "./victim.ts";

export interface RunOptions {
  readonly commit: string;
  readonly rateLimitScale: number;
  readonly attacks: readonly Attack[];
  /** Whether each is measured by itself, too, before all of them together. */
  readonly eachAlone: boolean;
  /** Of the quiet platform. */
  readonly quietSeconds: number;
  /** After each attack, in which the victim must be served as before. */
  readonly restSeconds: number;
  /** When the victim builds from Git: during each attack, during all of them together, or never. */
  readonly builds: "each" | "all" | "never";
  readonly log: (line: string) => void;
}

/** The victim's 99th percentile may be so many times the quiet one: beside one attack, and beside all on 2 processors. */
const SLOWDOWN = { one: 2, all: 3 };

/** How often the delay of this process's event loop is sampled. */
const DELAY_RESOLUTION_MS = 10;

/** Attacks, one after the other where that is requested, then concurrently, and removes all that was created. */
export async function run(options: RunOptions): Promise<Results> {
  const { attacks, log } = options;
  log("preparing the victim");
  const [own, first, second] = await Promise.all(
    ["victim", "attacker-1", "attacker-2"].map((name) => createOrganization(name)),
  );
  if (!own || !first || !second) {
    throw new Error("no organizations");
  }
  const victim = await startVictim(own, {
    rateLimitScale: options.rateLimitScale,
    builds: options.builds !== "never",
  });
  const target: Target = {
    url: stack.url,
    organizations: [first, second],
    rateLimitScale: options.rateLimitScale,
  };
  const observer = new Observer();
  const rows: Row[] = [];
  try {
    await sleep(3_000);
    log(`quiet for ${options.quietSeconds} s`);
    const quiet = await observeWindow(victim, () => sleep(options.quietSeconds * 1_000));
    for (const attack of options.eachAlone ? attacks : []) {
      log(`${attack.name} for ${attack.seconds} s`);
      const attackers = [await startAttacker(attack, target)];
      rows.push(await measure(attack.name, attackers, SLOWDOWN.one, options.builds === "each"));
    }
    const together = attacks.filter(({ isAlone }) => isAlone !== true);
    if (together.length > 1) {
      log("all concurrently");
      const attackers = await Promise.all(together.map((attack) => startAttacker(attack, target)));
      rows.push(await measure("all concurrently", attackers, SLOWDOWN.all, true));
    }
    log("counting rows and runs");
    const outcome = await victim.finish();
    const { commit, rateLimitScale } = options;
    return { commit, rateLimitScale, quiet: quiet.seen, quietLoopDelay: quiet.loopDelay, rows, outcome };
  } finally {
    await observer.stop();
    await victim.remove();
  }

  async function measure(
    name: string,
    attackers: readonly Attacker[],
    slowdown: number,
    builds: boolean,
  ): Promise<Row> {
    // A run of the victim's job is due during the first attack, and the window lasts until then though the attack may end sooner.
    const lasts = Math.max(...attackers.map(({ attack }) => attack.seconds)) * 1_000;
    const dueIn = rows.length === 0 ? await untilMinuteBeginsWithin(lasts) : 0;
    const before = await observer.take();
    const building = builds ? victim.build?.().catch((error: Error) => error.message) : undefined;
    const {
      value: answers,
      seen,
      loopDelay,
    } = await observeWindow(victim, async () => {
      const [answered] = await Promise.all([Promise.all(attackers.map((one) => one.run())), sleep(dueIn)]);
      await sleep(options.restSeconds * 1_000);
      return sumOf(answered);
    });
    const build = await building;
    await Promise.all(attackers.map((one) => one.ended()));
    const after = await observer.take();
    const expected = attackers.flatMap(({ attack }) => attack.expected);
    const required = attackers.flatMap(({ attack }) => attack.required ?? []);
    const ends = attackers.flatMap(({ attack }) => attack.ends ?? []);
    return {
      attack: name,
      seen,
      loopDelay,
      build,
      before,
      after,
      answers,
      expected,
      required,
      ends,
      slowdown,
    };
  }
}

/**
 * Waits until the next minute begins within the first two thirds of so many milliseconds, but not at once.
 * @returns milliseconds until it begins
 */
async function untilMinuteBeginsWithin(ms: number): Promise<number> {
  const [earliest, latest] = [ms / 10, (ms * 2) / 3];
  const ahead = 60_000 - (Date.now() % 60_000);
  if (ahead < earliest || ahead > latest) {
    await sleep((ahead - latest + 60_000) % 60_000);
    return latest;
  }
  return ahead;
}

/** What the victim saw while something was done; requests that were due then have all ended. */
export async function observeWindow<T>(victim: Victim, work: () => Promise<T>) {
  const delays = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delays.enable();
  const from = performance.now();
  const value = await work();
  const window: Window = { from, to: performance.now() };
  await allEnded(victim, window);
  delays.disable();
  const seen = Object.fromEntries(
    kinds.map((kind) => [kind, summarize(victim.load.samples, kind, window)]),
  ) as Record<Kind, Seen>;
  return { value, seen, loopDelay: Math.max(0, delays.max / 1e6 - DELAY_RESOLUTION_MS) };
}

/** Waits until no request of a window can be pending: each ends or fails within 10 s. */
async function allEnded({ load }: Victim, { to }: Window): Promise<void> {
  while ([...load.pending].some(({ due }) => due < to)) {
    await sleep(50);
  }
}

function sumOf(answered: readonly Answers[]): Answers {
  const tally = new Tally();
  for (const answers of answered) {
    for (const [answer, count] of Object.entries(answers)) {
      tally.add(answer, count);
    }
  }
  return tally.answers();
}
