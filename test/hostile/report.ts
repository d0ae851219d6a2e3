/** The table: what attackers did, and what the victim and the platform's processes saw of it. Pure. */
import { type Answers, unexpected } from "./attack.ts";
import type { Process } from "./process.ts";
import { type Kind, kinds, type Seen } from "./samples.ts";
import type { Outcome } from "./victim.ts";

/** One attack, or several concurrent ones. */
export interface Row {
  readonly attack: string;
  readonly seen: Readonly<Record<Kind, Seen>>;
  /**
   * Highest delay of the measuring process's own event loop, in milliseconds. It sent no request and read no answer meanwhile:
   * latencies up to it need not be the platform's.
   */
  readonly loopDelay: number;
  /** Seconds that the victim's build took meanwhile, or why it failed; absent where none was requested. */
  readonly build?: number | string;
  readonly before: readonly Process[];
  readonly after: readonly Process[];
  readonly answers: Answers;
  /** Answers that the attack may be given. */
  readonly expected: readonly string[];
  /** Those that it has to be given at least once. */
  readonly required: readonly string[];
  /** Processes that the attack itself ends, by the beginning of their names. */
  readonly ends: readonly string[];
  /** How many times the quiet latency the victim's may be. */
  readonly slowdown: number;
}

export interface Results {
  /** What was measured: a commit, and the API's rate limits as a multiple of the usual ones. */
  readonly commit: string;
  readonly rateLimitScale: number;
  readonly quiet: Readonly<Record<Kind, Seen>>;
  readonly quietLoopDelay: number;
  readonly rows: readonly Row[];
  readonly outcome: Outcome;
}

/** Most of its limit that a process may use. */
const MEMORY_SHARE = 0.7;
/** A 99th percentile below it is as good as the quiet one: the attackers' and the platform's processors are the same. */
export const UNNOTICED_MS = 100;

/** Of fewer samples the 99th percentile is the slowest one, whatever that one met. */
const JUDGED_SAMPLES = 100;

/** Processes that restarted, in the same pod or in another, with the reason. */
export function restarted({ before, after, ends }: Pick<Row, "before" | "after" | "ends">): string[] {
  const known = new Map(before.map((one) => [one.name, one]));
  const others = after.filter(({ name }) => !ends.some((ended) => name.startsWith(ended)));
  return others.flatMap(({ name, restarts, lastEnd }) => {
    const was = known.get(name);
    if (was === undefined) {
      return [`${name} is another pod`];
    }
    return restarts > was.restarts ? [`${name} ${lastEnd ?? "ended"}`] : [];
  });
}

const shareOf = ({ memoryPeak, memoryLimit }: Process): number =>
  memoryLimit === undefined ? 0 : memoryPeak / memoryLimit;

/** Where the victim was served slower than it may be; of the machine as much as of the platform, and so a figure, not a test. */
export function slowness(row: Row, quiet: Results["quiet"]): string[] {
  return kinds.flatMap((kind) => {
    const { sent, p99 } = row.seen[kind];
    const isSlow = sent >= JUDGED_SAMPLES && p99 > Math.max(row.slowdown * quiet[kind].p99, UNNOTICED_MS);
    return isSlow ? [`p99 of ${kind} is ${round(p99)} ms, quiet ${round(quiet[kind].p99)} ms`] : [];
  });
}

/** What else is wrong with a row, in words; empty when the victim was not harmed. */
export function faults(row: Row): string[] {
  const found: string[] = [];
  for (const kind of kinds) {
    const { failed, sent, failures } = row.seen[kind];
    if (failed > 0) {
      found.push(`${failed} of ${sent} of kind ${kind} failed (${failures[0]})`);
    }
  }
  if (typeof row.build === "string") {
    found.push(row.build);
  }
  for (const one of restarted(row)) {
    found.push(`restarted: ${one}`);
  }
  for (const one of row.after.filter((each) => shareOf(each) > MEMORY_SHARE)) {
    found.push(`${one.name} used ${percent(shareOf(one))} of its memory limit`);
  }
  for (const answer of unexpected(row.answers, row.expected)) {
    found.push(`the attacker was answered ${answer}`);
  }
  for (const answer of row.required.filter((one) => (row.answers[one] ?? 0) === 0)) {
    found.push(`the attacker was never answered ${answer}`);
  }
  return found;
}

/** Where a run was slow, each named by its attack. */
export const allSlowness = ({ rows, quiet }: Results): string[] =>
  rows.flatMap((row) => slowness(row, quiet).map((one) => `${row.attack}: ${one}`));

/** What else is wrong with a run, each named by its attack; empty when the platform withstood all of it. */
export function allFaults({ rows, outcome }: Results): string[] {
  const found = rows.flatMap((row) => faults(row).map((fault) => `${row.attack}: ${fault}`));
  if (outcome.lostRows > 0) {
    found.push(`${outcome.lostRows} of ${outcome.acknowledgedRows} rows were lost`);
  }
  if (outcome.dueRuns === 0) {
    found.push("no run of the job was due");
  }
  for (const minute of outcome.missedRuns) {
    found.push(`no run of the job succeeded that was due at ${minute}`);
  }
  return found;
}

const round = (value: number): number => (value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
const percent = (share: number): string => `${Math.round(share * 100)} %`;
const ratio = (value: number, quiet: number): string => (value / quiet).toFixed(1);

/** The report as Markdown. */
export function markdown(results: Results): string {
  const { quiet, quietLoopDelay, rows, outcome } = results;
  const header = ["attack", ...kinds.map((kind) => `${kind}: failed, p50 / p99 ms (p99 to quiet)`)];
  header.push(
    "event loop delay of the measuring process, ms",
    "restarts",
    "highest memory of its limit",
    "answers to the attacker",
  );
  const lines = [
    [
      "none",
      ...kinds.map((kind) => seenCell(quiet[kind], undefined)),
      String(round(quietLoopDelay)),
      "",
      "",
      "",
    ],
    ...rows.map((row) => [
      row.attack,
      ...kinds.map((kind) => seenCell(row.seen[kind], quiet[kind])),
      String(round(row.loopDelay)),
      restarted(row).join(", ") || "none",
      memoryCell(row.after),
      answersCell(row.answers),
    ]),
  ];
  const wrong = [...allFaults(results), ...allSlowness(results)];
  return [
    `Commit ${results.commit}, rate limits x ${results.rateLimitScale}.`,
    `Rows acknowledged ${outcome.acknowledgedRows}, lost ${outcome.lostRows}; runs due ${outcome.dueRuns}, missed ${outcome.missedRuns.length}.`,
    "",
    row(header),
    row(header.map(() => "---")),
    ...lines.map(row),
    "",
    wrong.length === 0 ? "Nothing is wrong." : `Wrong:\n${wrong.map((one) => `- ${one}`).join("\n")}`,
    "",
  ].join("\n");
}

const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

function seenCell({ failed, sent, p50, p99 }: Seen, quiet: Seen | undefined): string {
  const compared = quiet === undefined ? "" : ` (${ratio(p99, quiet.p99)})`;
  return `${failed} of ${sent}, ${round(p50)} / ${round(p99)}${compared}`;
}

/** The three processes that came closest to their limits. */
function memoryCell(processes: readonly Process[]): string {
  return processes
    .filter((one) => one.memoryLimit !== undefined)
    .toSorted((a, b) => shareOf(b) - shareOf(a))
    .slice(0, 3)
    .map((one) => `${one.name} ${Math.round(one.memoryPeak / 2 ** 20)} MiB (${percent(shareOf(one))})`)
    .join(", ");
}

const answersCell = (answers: Answers): string =>
  Object.entries(answers)
    .map(([answer, count]) => `${count} x ${answer}`)
    .join(", ");
