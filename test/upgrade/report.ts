/** The table of an upgrade: what its users saw of each step. Pure. */
import type { Kind, Seen } from "../hostile/samples.ts";
import { kinds } from "../hostile/samples.ts";

/** One step from a release to another, or a rest between two. */
export interface Step {
  /** `0.1.0 → 0.2.0`. */
  readonly name: string;
  /** Of the step itself, without the time after it in which the load goes on. */
  readonly seconds: number;
  /** How often `hack/up.sh` was killed before it was left to its end. */
  readonly kills: number;
  readonly seen: Readonly<Record<Kind, Seen>>;
  /** Pods of tenants that are others than before it. */
  readonly replacedPods: readonly string[];
  /** Builds that ran one after the other. */
  readonly builds: { readonly succeeded: number; readonly failures: readonly string[] };
}

/** What can only be known at the end. */
export interface Outcome {
  readonly dueRuns: number;
  readonly missedRuns: readonly string[];
  /** Contradictions between pods, runs and charges. */
  readonly violations: readonly string[];
  /** Of each engine. */
  readonly rows: readonly {
    readonly engine: string;
    readonly acknowledged: number;
    readonly lost: number;
    /** Why sessions ended; undefined where that is counted as failed requests. */
    readonly failures?: readonly string[];
  }[];
}

export interface Results {
  readonly commit: string;
  readonly steps: readonly Step[];
  readonly outcome: Outcome;
}

/** What is wrong, in words; empty when nobody noticed. */
export function faults({ steps, outcome }: Results): string[] {
  const found: string[] = [];
  for (const { name, seen, replacedPods, builds } of steps) {
    for (const kind of kinds) {
      const { failed, sent, failures } = seen[kind];
      if (failed > 0) {
        found.push(
          `${name}: ${failed} of ${sent} of kind ${kind} failed (${failures.slice(0, 3).join(", ")})`,
        );
      }
    }
    if (replacedPods.length > 0) {
      found.push(`${name}: ${replacedPods.length} pods of tenants were replaced: ${replacedPods.join(", ")}`);
    }
    if (builds.succeeded === 0) {
      found.push(`${name}: no build succeeded`);
    }
    found.push(...builds.failures.map((failure) => `${name}: ${failure}`));
  }
  if (outcome.dueRuns === 0) {
    found.push("no run of the job was due");
  }
  found.push(...outcome.missedRuns.map((at) => `no run of the job succeeded that was due at ${at}`));
  found.push(...outcome.violations);
  for (const { engine, acknowledged, lost, failures = [] } of outcome.rows) {
    if (acknowledged === 0) {
      found.push(`${engine} acknowledged no row`);
    }
    if (lost > 0) {
      found.push(`${engine} lost ${lost} of ${acknowledged} acknowledged rows`);
    }
    if (failures.length > 0) {
      found.push(`${engine} ended ${failures.length} sessions (${failures[0]})`);
    }
  }
  return found;
}

const row = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
const milliseconds = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

/** The report as Markdown. */
export function markdown(results: Results): string {
  const { commit, steps, outcome } = results;
  const header = ["step", "seconds", "kills", ...kinds.map((kind) => `${kind}: failed, p50 / p99 ms`)];
  header.push("pods of tenants replaced", "builds: failed");
  const wrong = faults(results);
  return [
    `Measured on commit ${commit}.`,
    "",
    row(header),
    row(header.map(() => "---")),
    ...steps.map(({ name, seconds, kills, seen, replacedPods, builds }) =>
      row([
        name,
        Math.round(seconds),
        kills,
        ...kinds.map((kind) => {
          const { failed, sent, p50, p99 } = seen[kind];
          return `${failed} of ${sent}, ${milliseconds(p50)} / ${milliseconds(p99)}`;
        }),
        replacedPods.length,
        `${builds.failures.length} of ${builds.succeeded + builds.failures.length}`,
      ]),
    ),
    "",
    row(["database", "rows acknowledged", "lost", "sessions ended"]),
    row(["---", "---", "---", "---"]),
    ...outcome.rows.map(({ engine, acknowledged, lost, failures }) =>
      row([engine, acknowledged, lost, failures?.length ?? "see row"]),
    ),
    "",
    `Runs due ${outcome.dueRuns}, missed ${outcome.missedRuns.length}; contradictions between pods, runs and charges: ${outcome.violations.length}.`,
    "",
    wrong.length === 0 ? "Nothing is wrong." : `Wrong:\n${wrong.map((one) => `- ${one}`).join("\n")}`,
    "",
  ].join("\n");
}
