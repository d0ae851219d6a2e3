/** What a process holds: memory, sockets, handles. */
import { residentMiB } from "../setup.ts";

/** A process that shows its metrics. */
export interface Observed {
  readonly name: string;
  readonly pid: number;
  readonly metricsUrl: string;
}

/** What a process held at a moment. */
export interface Holding {
  /** MiB. */
  readonly resident: number;
  /** MiB of objects, before a garbage collection. */
  readonly heap: number;
  /** File descriptors: sockets and files. */
  readonly descriptors: number;
  /** Of libuv: sockets, timers, requests. */
  readonly resources: number;
}

const MIB = 1024 * 1024;

/** @throws Error if it does not answer */
export async function observe({ pid, metricsUrl }: Observed): Promise<Holding> {
  const text = await (await fetch(metricsUrl)).text();
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  return {
    resident: residentMiB(pid),
    heap: value("nodejs_heap_size_used_bytes") / MIB,
    descriptors: value("process_open_fds"),
    resources: value("nodejs_active_resources_total"),
  };
}

/** The mean of each of some holdings. */
export function meanOf(holdings: readonly Holding[]): Holding {
  const mean = (key: keyof Holding): number =>
    holdings.reduce((sum, holding) => sum + holding[key], 0) / holdings.length;
  return {
    resident: mean("resident"),
    heap: mean("heap"),
    descriptors: mean("descriptors"),
    resources: mean("resources"),
  };
}

export const holdingText = ({ resident, heap, descriptors, resources }: Holding): string =>
  `${resident.toFixed(0)} MiB, heap ${heap.toFixed(0)} MiB, ${descriptors.toFixed(0)} descriptors, ${resources.toFixed(0)} resources`;
