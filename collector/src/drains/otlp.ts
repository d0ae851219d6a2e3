import type { Level } from "@slipway/analytics";
import type { OutgoingLine } from "./receiver.ts";

/** Lines as a request of OTLP, JSON encoding: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. Pure. */

/** Numbers of the log data model: the first of each range, as the model has for formats of one number a level. */
const SEVERITY: Readonly<Record<Level, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
  fatal: 21,
};

const text = (key: string, value: string) => ({ key, value: { stringValue: value } });

/** The body of `POST /v1/logs`; lines of an instance stay in their order. */
export function exportRequest(lines: readonly OutgoingLine[]): string {
  const bySource = Map.groupBy(lines, (line) =>
    JSON.stringify([line.project, line.instance, line.container]),
  );
  const resourceLogs = bySource.values().map((ofSource) => ({
    resource: { attributes: resourceOf(ofSource[0] as OutgoingLine) },
    scopeLogs: [{ scope: { name: "slipway" }, logRecords: ofSource.map(recordOf) }],
  }));
  return JSON.stringify({ resourceLogs: [...resourceLogs] });
}

function resourceOf({ organization, project, projectName, instance, container }: OutgoingLine) {
  return [
    text("service.name", projectName),
    text("service.instance.id", instance),
    text("slipway.organization", organization),
    text("slipway.project", project),
    text("slipway.instance", instance),
    text("k8s.pod.name", instance),
    text("k8s.container.name", container),
  ];
}

function recordOf({ at, storedAt, level, text: body, stream, continues, file, offset }: OutgoingLine) {
  return {
    timeUnixNano: at,
    observedTimeUnixNano: `${storedAt}000000`,
    ...(level === null ? {} : { severityNumber: SEVERITY[level], severityText: level.toUpperCase() }),
    body: { stringValue: body },
    attributes: [
      text("log.iostream", stream),
      // The same of a line that comes twice, and of no other.
      text("log.record.uid", `${file}-${offset}`),
      ...(continues ? [{ key: "slipway.continues", value: { boolValue: true } }] : []),
    ],
  };
}

/** How many records the answer of a request that was taken says are refused; 0 for an answer that says nothing. */
export function rejectedRecords(body: string): number {
  try {
    const { partialSuccess } = JSON.parse(body) as {
      partialSuccess?: { rejectedLogRecords?: string | number };
    };
    const rejected = Number(partialSuccess?.rejectedLogRecords ?? 0);
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch {
    return 0;
  }
}

/** Milliseconds of a `Retry-After`, in seconds or as a date; undefined for another form. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) {
    return undefined;
  }
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
