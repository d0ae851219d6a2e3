import { spreadOf } from "../job-audit.ts";

/** What one operator took for one task. */
export interface Phase {
  readonly contender: string;
  readonly what: string;
  /** Milliseconds until all is applied. */
  readonly wall: number;
  /** Seconds of processor of the operator that leads. */
  readonly cpu?: number;
  /** Seconds of processor of each component of the control plane. */
  readonly controlPlane?: ReadonlyMap<string, number>;
  /** Its resident MiB at the end. */
  readonly memory?: number;
  /** Milliseconds from the change of each object to its last child. */
  readonly each?: readonly number[];
  /** Writes by client and kind. */
  readonly writes?: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

/** Prints a table of all phases, and for each what was written. */
export function printReport(objects: number, phases: readonly Phase[]): void {
  console.log(`\n${objects} objects\n`);
  const head = ["", "wall", "processor", "apiserver", "others", "memory", "p50", "p99", "writes an object"];
  console.log(row("task", head));
  for (const phase of phases) {
    const { p50, p99 } = spreadOf(phase.each ?? []);
    const total = [...(phase.writes?.values() ?? [])].reduce((sum, own) => sum + sumOf(own), 0);
    console.log(
      row(phase.what, [
        phase.contender,
        `${(phase.wall / 1_000).toFixed(1)} s`,
        phase.cpu === undefined ? "" : `${phase.cpu.toFixed(1)} s`,
        ...controlPlaneCells(phase.controlPlane),
        phase.memory === undefined ? "" : `${phase.memory.toFixed(0)} MiB`,
        phase.each?.length ? `${(p50 / 1_000).toFixed(2)} s` : "",
        phase.each?.length ? `${(p99 / 1_000).toFixed(2)} s` : "",
        phase.writes === undefined ? "" : (total / objects).toFixed(1),
      ]),
    );
  }
  for (const { contender, what, writes } of phases) {
    if (writes === undefined) {
      continue;
    }
    console.log(`\n${contender}, ${what}: writes an object`);
    for (const [client, own] of writes) {
      const kinds = [...own].sort(([, a], [, b]) => b - a).slice(0, 9);
      const shares = kinds.map(([kind, count]) => `${kind} ${(count / objects).toFixed(2)}`);
      console.log(
        `  ${client.padEnd(22)} ${(sumOf(own) / objects).toFixed(1).padStart(5)}  ${shares.join(", ")}`,
      );
    }
  }
}

/** Seconds of processor of the apiserver with its etcd, and of all other components. */
function controlPlaneCells(controlPlane: Phase["controlPlane"]): string[] {
  if (controlPlane === undefined) {
    return ["", ""];
  }
  const sum = (isServer: boolean) =>
    [...controlPlane]
      .filter(([name]) => ["kube-apiserver", "etcd"].includes(name) === isServer)
      .reduce((total, [, seconds]) => total + seconds, 0);
  return [`${sum(true).toFixed(1)} s`, `${sum(false).toFixed(1)} s`];
}

const sumOf = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);

const row = (what: string, [contender = "", ...cells]: readonly string[]): string =>
  `${what.padEnd(52)} ${contender.padEnd(18)} ${cells.map((cell) => cell.padStart(10)).join(" ")}`;
