import { readFileSync } from "node:fs";

/** Clock ticks of all processors since the machine started. */
export interface ProcessorTimes {
  readonly total: number;
  /** Nothing ran, or what would have waited for a disk. */
  readonly idle: number;
  /** The machine below ran another one. */
  readonly stolen: number;
}

/** The first line of /proc/stat. @see https://man7.org/linux/man-pages/man5/proc_stat.5.html */
export function parseProcessorTimes(stat: string): ProcessorTimes {
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = stat
    .slice(0, stat.indexOf("\n"))
    .split(/\s+/)
    .slice(1)
    .map(Number);
  const waited = idle + iowait;
  return { total: user + nice + system + waited + irq + softirq + steal, idle: waited, stolen: steal };
}

export const processorTimes = (): ProcessorTimes => parseProcessorTimes(readFileSync("/proc/stat", "utf8"));

/** How busy the processors were between two moments, as a stage's line says it. */
export function busy(from: ProcessorTimes, to: ProcessorTimes): string {
  const total = to.total - from.total;
  if (total === 0) {
    return "processors not measured";
  }
  const percent = (part: number): string => `${Math.round((100 * part) / total)} %`;
  const stolen = percent(to.stolen - from.stolen);
  return `processors ${percent(total - (to.idle - from.idle))} busy, ${stolen} stolen`;
}
