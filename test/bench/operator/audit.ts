/** What an audit log records of the objects that a benchmark made: who wrote how often, and when each object was applied. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { readVerbs } from "../../../hack/cluster/control-plane.ts";

/** A write that the apiserver did. */
export interface Write {
  /** When it was answered, in milliseconds since the epoch, to the microsecond. */
  readonly at: number;
  /** The client: the first word of its user agent, without a version. */
  readonly client: string;
  /** `create deployments`, `update apps/status`. */
  readonly what: string;
  readonly resource: string;
  readonly name: string;
}

interface AuditEvent {
  verb: string;
  userAgent?: string;
  objectRef?: { resource?: string; subresource?: string; name?: string };
  responseStatus?: { code?: number };
  stageTimestamp: string;
}

/** One line of an audit log as a write; undefined for reads, refused writes, and leases, which everybody renews. */
export function parseWrite(line: string): Write | undefined {
  const { verb, userAgent = "", objectRef, responseStatus, stageTimestamp } = JSON.parse(line) as AuditEvent;
  const { resource = "", subresource, name = "" } = objectRef ?? {};
  if (readVerbs.includes(verb) || (responseStatus?.code ?? 500) >= 300 || resource === "leases") {
    return undefined;
  }
  const [seconds = "", fraction = "0"] = stageTimestamp.replace("Z", "").split(".");
  return {
    at: Date.parse(`${seconds}Z`) + Number(`0.${fraction}`) * 1_000,
    client: clientOf(userAgent),
    what: `${verb} ${resource}${subresource ? `/${subresource}` : ""}`,
    resource,
    name,
  };
}

/** All of kube-controller-manager's controllers are one client; others are what their user agents begin with, without a version. */
function clientOf(userAgent: string): string {
  const [first = ""] = userAgent.split(" ");
  return first.startsWith("kube-controller-manager") ? "controllers" : first.replace(/\/v?\d.*$/, "");
}

/** The writes of an audit log within a time, in milliseconds since the epoch. */
export async function readWrites(file: string, from: number, until: number): Promise<Write[]> {
  const writes: Write[] = [];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const write = line === "" ? undefined : parseWrite(line);
    if (write !== undefined && write.at >= from && write.at <= until) {
      writes.push(write);
    }
  }
  return writes;
}

/** Kinds whose last write makes an object applied. */
const WORKLOAD = ["deployments", "services", "ingresses", "networkpolicies"];

/**
 * Milliseconds from the first write of a benchmark's client on each object to the operator's last one on its children, whose names begin
 * with the object's.
 * @param names of the objects, all of one length
 */
export function latencies(
  writes: readonly Write[],
  { names, client, operator }: { names: readonly string[]; client: string; operator: string },
): number[] {
  const length = names[0]?.length ?? 0;
  const begun = new Map<string, number>();
  const applied = new Map<string, number>();
  const wanted = new Set(names);
  for (const { at, client: by, resource, name } of writes) {
    const object = name.slice(0, length);
    if (!wanted.has(object)) {
      continue;
    }
    if (by === client && !begun.has(object)) {
      begun.set(object, at);
    } else if (by === operator && WORKLOAD.includes(resource)) {
      applied.set(object, Math.max(at, applied.get(object) ?? 0));
    }
  }
  return [...begun].flatMap(([name, at]) => {
    const end = applied.get(name);
    return end === undefined ? [] : [end - at];
  });
}

/** How many writes each client did, by kind. */
export function countByClient(writes: readonly Write[]): Map<string, Map<string, number>> {
  const counts = new Map<string, Map<string, number>>();
  for (const { client, what } of writes) {
    const own = counts.get(client) ?? new Map<string, number>();
    counts.set(client, own.set(what, (own.get(what) ?? 0) + 1));
  }
  return counts;
}
