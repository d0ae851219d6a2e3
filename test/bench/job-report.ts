import type { Spread } from "./job-audit.ts";
import type { Processors } from "./job-processors.ts";

/** Seconds from the end of a container to its charge. */
export type Charged = Spread;

/** All jobs at one minute; times in seconds after it. */
export interface AtOnce {
  /** Jobs as the controller-manager made them. */
  created: Spread;
  /** What each process took until the last of them was made. */
  processors: Processors;
  /** Admitted by the operator. */
  admitted: Spread;
  /** Containers started, as the nodes report it. */
  started: Spread;
  charged: Charged;
  missed: Record<string, number>;
  /** Writes of the operator by verb and resource. */
  writes: Map<string, number>;
  /** Those of them that were refused because something else had written meanwhile. */
  conflicts: Map<string, number>;
  cpuSeconds: number;
  /** From the minute until all were charged. */
  seconds: number;
}

export interface LimitsReport {
  /** Limits of the controller-manager. */
  name: string;
  spread?: { admitted: Spread; charged: Charged; missed: Record<string, number> };
  plain: { created: Spread; started: Spread; processors: Processors };
  atOnce: AtOnce;
  minutely?: {
    runs: number;
    due: number;
    charged: Charged;
    missed: Record<string, number>;
    cores: number;
  };
}

export interface Report {
  jobs: number;
  limits: LimitsReport[];
  /** Highest resident memory of the operator. */
  memoryMiB: number;
  /** Load of the machine. */
  load: number;
}

/** Seconds. */
const GOALS = { spreadP99: 2, behindPlain: 5, lagP99: 5 };

/** Prints the figures with their goals. @returns whether all goals are reached */
export function printReport(report: Report): boolean {
  let reached = true;
  const row = (what: string, value: string, goal = "", isMet = true) => {
    reached &&= isMet;
    console.log(`  ${what.padEnd(46)} ${value.padEnd(44)} ${goal}${isMet ? "" : "  MISSED"}`);
  };
  const processors = (what: string, used: Processors, seconds: number) => {
    const sum = Object.values(used).reduce((all, one) => all + one, 0);
    row(
      `${what}: processor until the last was made`,
      `${sum.toFixed(1)} s, ${(sum / seconds).toFixed(2)} cores`,
    );
    for (const [name, one] of Object.entries(used)) {
      row(`    ${name}`, `${one.toFixed(1)} s`);
    }
  };
  console.log(`\n${report.jobs} jobs on one operator; load of the machine up to ${report.load.toFixed(1)}`);
  for (const { name, spread, plain, atOnce, minutely } of report.limits) {
    console.log(`\ncontroller-manager with ${name} limits`);
    if (spread) {
      const { p99 } = spread.admitted;
      row(
        "spread: scheduled to admitted",
        times(spread.admitted),
        `p99 <= ${GOALS.spreadP99} s`,
        p99 <= GOALS.spreadP99,
      );
      row("spread: missed", counts(spread.missed), "none", total(spread.missed) === 0);
      row(
        "spread: container's end to charge",
        times(spread.charged),
        `p99 <= ${GOALS.lagP99} s`,
        spread.charged.p99 <= GOALS.lagP99,
      );
    }
    row("plain CronJobs at :00: Job made", times(plain.created));
    row("plain CronJobs at :00: container started", times(plain.started));
    processors("plain CronJobs at :00", plain.processors, plain.created.max);
    const behind = atOnce.admitted.max - plain.created.max;
    row("at :00: Job made", times(atOnce.created));
    processors("at :00", atOnce.processors, atOnce.created.max);
    row(
      "at :00: admitted",
      `${times(atOnce.admitted)}, ${ratio(atOnce.admitted.max, plain.created.max)} x plain`,
      `last <= plain + ${GOALS.behindPlain} s: ${signed(behind)} s`,
      behind <= GOALS.behindPlain,
    );
    const startedBehind = atOnce.started.max - plain.started.max;
    row(
      "at :00: container started",
      `${times(atOnce.started)}, ${ratio(atOnce.started.max, plain.started.max)} x plain`,
      `(last ${signed(startedBehind)} s to plain)`,
    );
    row("at :00: missed", counts(atOnce.missed), "none", total(atOnce.missed) === 0);
    row(
      "at :00: runs charged",
      `${atOnce.charged.count} of ${report.jobs}`,
      "all",
      atOnce.charged.count === report.jobs,
    );
    row(
      "at :00: container's end to charge",
      times(atOnce.charged),
      `p99 <= ${GOALS.lagP99} s`,
      atOnce.charged.p99 <= GOALS.lagP99,
    );
    const writes = [...atOnce.writes].sort(([, a], [, b]) => b - a);
    const perRun = writes.reduce((sum, [, count]) => sum + count, 0) / atOnce.charged.count;
    row("at :00: operator's writes a run", perRun.toFixed(2));
    for (const [kind, count] of writes) {
      row(`    ${kind}`, (count / atOnce.charged.count).toFixed(2));
    }
    row("at :00: writes that met another's", counts(Object.fromEntries(atOnce.conflicts)));
    row(
      "at :00: operator's processor",
      `${((atOnce.cpuSeconds / atOnce.charged.count) * 1000).toFixed(1)} ms a run, ` +
        `${(atOnce.cpuSeconds / atOnce.seconds).toFixed(2)} cores over ${atOnce.seconds.toFixed(0)} s`,
    );
    if (minutely) {
      const share = `${minutely.runs} of ${minutely.due} ran, missed ${counts(minutely.missed)}`;
      row("every minute", share);
      row("every minute: container's end to charge", times(minutely.charged));
      row("every minute: operator's processor", `${minutely.cores.toFixed(2)} cores`);
    }
  }
  row("\n  operator's resident memory, highest", `${report.memoryMiB.toFixed(0)} MiB`);
  return reached;
}

const times = ({ p50, p99, max, count }: Spread) =>
  `p50 ${p50.toFixed(2)}  p99 ${p99.toFixed(2)}  max ${max.toFixed(2)} s (${count})`;
const signed = (seconds: number) => `${seconds < 0 ? "" : "+"}${seconds.toFixed(1)}`;
const ratio = (a: number, b: number) => (a / b).toFixed(2);
const total = (missed: Record<string, number>) =>
  Object.values(missed).reduce((sum, count) => sum + count, 0);
const counts = (missed: Record<string, number>) =>
  Object.entries(missed)
    .map(([reason, count]) => `${count} ${reason}`)
    .join(", ") || "0";
