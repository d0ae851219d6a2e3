import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { readVerbs } from "../../hack/cluster/control-plane.ts";

/** A write as the apiserver noted it. */
interface AuditEvent {
  verb: string;
  userAgent?: string;
  user?: { username?: string };
  objectRef?: { resource?: string; subresource?: string; name?: string; apiGroup?: string };
  responseStatus?: { code?: number };
  /** When its answer was ready, to the microsecond. */
  stageTimestamp: string;
}

/** What an audit log records of jobs from a moment on. */
export interface JobWrites {
  /** Milliseconds since the epoch at which each Job was made, by its name. */
  created: Map<string, number>;
  /** The same of the moment at which the operator let it go: the first that it wrote on it. */
  admitted: Map<string, number>;
  /** Writes of the operator that were done, by resource and verb. */
  operator: Map<string, number>;
  /** Writes of the operator that met another's and were refused, likewise. */
  conflicts: Map<string, number>;
}

/** Reads an audit log once. */
export async function readJobWrites(file: string, from: Date): Promise<JobWrites> {
  const created = new Map<string, number>();
  const admitted = new Map<string, number>();
  const operator = new Map<string, number>();
  const conflicts = new Map<string, number>();
  for await (const line of createInterface({ input: createReadStream(file) })) {
    if (line === "") {
      continue;
    }
    const event = JSON.parse(line) as AuditEvent;
    const at = Date.parse(event.stageTimestamp);
    const code = event.responseStatus?.code ?? 500;
    if (at < from.getTime() || (code >= 300 && code !== 409)) {
      continue;
    }
    const { resource = "", subresource, name = "" } = event.objectRef ?? {};
    if (event.verb === "create" && resource === "jobs" && code < 300) {
      created.set(name, at);
    }
    if (
      event.userAgent === "slipway.dev/operator" &&
      resource !== "leases" &&
      !readVerbs.includes(event.verb)
    ) {
      const key = `${event.verb} ${resource}${subresource ? `/${subresource}` : ""}`;
      const counts = code === 409 ? conflicts : operator;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      if (key === "patch jobs" && code < 300 && !admitted.has(name)) {
        admitted.set(name, at);
      }
    }
  }
  return { created, admitted, operator, conflicts };
}

/** Middle, 99th of a hundred, and largest of some numbers; NaN of none. */
export interface Spread {
  p50: number;
  p99: number;
  max: number;
  count: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? Number.NaN, count: sorted.length };
}
