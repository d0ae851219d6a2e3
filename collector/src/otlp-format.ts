/** What of OpenTelemetry's logs and spans (opentelemetry-proto v1) is read: names and numbers as its `.proto` files have them. */

import protobuf from "protobufjs";

const { Root } = protobuf;

const anyValue = {
  oneofs: {
    value: { oneof: ["stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue"] },
  },
  fields: {
    stringValue: { type: "string", id: 1 },
    boolValue: { type: "bool", id: 2 },
    intValue: { type: "int64", id: 3 },
    doubleValue: { type: "double", id: 4 },
    arrayValue: { type: "ArrayValue", id: 5 },
    kvlistValue: { type: "KeyValueList", id: 6 },
  },
};

const repeated = (type: string, id: number) => ({ rule: "repeated", type, id });

const root = Root.fromJSON({
  nested: {
    AnyValue: anyValue,
    ArrayValue: { fields: { values: repeated("AnyValue", 1) } },
    KeyValueList: { fields: { values: repeated("KeyValue", 1) } },
    KeyValue: { fields: { key: { type: "string", id: 1 }, value: { type: "AnyValue", id: 2 } } },
    Resource: { fields: { attributes: repeated("KeyValue", 1) } },
    LogRecord: {
      fields: {
        timeUnixNano: { type: "fixed64", id: 1 },
        body: { type: "AnyValue", id: 5 },
        attributes: repeated("KeyValue", 6),
        observedTimeUnixNano: { type: "fixed64", id: 11 },
      },
    },
    ScopeLogs: { fields: { logRecords: repeated("LogRecord", 2) } },
    ResourceLogs: {
      fields: { resource: { type: "Resource", id: 1 }, scopeLogs: repeated("ScopeLogs", 2) },
    },
    ExportLogsServiceRequest: { fields: { resourceLogs: repeated("ResourceLogs", 1) } },
    Span: {
      fields: {
        kind: { type: "int32", id: 6 },
        startTimeUnixNano: { type: "fixed64", id: 7 },
        endTimeUnixNano: { type: "fixed64", id: 8 },
        attributes: repeated("KeyValue", 9),
      },
    },
    ScopeSpans: { fields: { spans: repeated("Span", 2) } },
    ResourceSpans: {
      fields: { resource: { type: "Resource", id: 1 }, scopeSpans: repeated("ScopeSpans", 2) },
    },
    ExportTraceServiceRequest: { fields: { resourceSpans: repeated("ResourceSpans", 1) } },
  },
});

/** What an exporter may send: each has a path of its own, `/v1/<signal>`. */
export type Signal = "logs" | "traces";

const requests = {
  logs: root.lookupType("ExportLogsServiceRequest"),
  traces: root.lookupType("ExportTraceServiceRequest"),
};

/** A request to `/v1/logs` or `/v1/traces`, in the names of its JSON form. */
export interface ExportRequest {
  resourceLogs?: { resource?: WithAttributes; scopeLogs?: { logRecords?: LogRecord[] }[] }[];
  resourceSpans?: { resource?: WithAttributes; scopeSpans?: { spans?: Span[] }[] }[];
}

interface WithAttributes {
  attributes?: { key?: string; value?: AnyValue }[];
}

/** 64 bits: a text in JSON. */
type Long = string | number;

export interface LogRecord extends WithAttributes {
  timeUnixNano?: Long;
  observedTimeUnixNano?: Long;
  body?: AnyValue;
}

export interface Span extends WithAttributes {
  /** Of the enumeration: 2 is a server's. */
  kind?: number | string;
  startTimeUnixNano?: Long;
  endTimeUnixNano?: Long;
}

interface AnyValue {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: Long;
  doubleValue?: number;
  arrayValue?: { values?: AnyValue[] };
}

/** @throws Error for bytes that are no such message */
export function decodeProtobuf(signal: Signal, bytes: Uint8Array): ExportRequest {
  const type = requests[signal];
  return type.toObject(type.decode(bytes), { longs: String }) as ExportRequest;
}

/** The same message in protobuf, for tests and tools. */
export function encodeProtobuf(signal: Signal, request: ExportRequest): Uint8Array {
  const type = requests[signal];
  return type.encode(type.fromObject(request)).finish();
}

/** @throws Error for a text that is no such message */
export function decodeJson(text: string): ExportRequest {
  const found: unknown = JSON.parse(text);
  if (typeof found !== "object" || found === null || Array.isArray(found)) {
    throw new Error("no object");
  }
  return found as ExportRequest;
}

/** A log record or a span, with what is said of all that come from the same source. */
export interface Telemetry {
  signal: Signal;
  record: LogRecord & Span;
  resource: WithAttributes | undefined;
}

/** All records of a request, whatever is missing or of another kind around them. */
export function recordsOf(signal: Signal, { resourceLogs, resourceSpans }: ExportRequest): Telemetry[] {
  const list = <T>(value: T[] | undefined): T[] => (Array.isArray(value) ? value : []);
  const telemetryOf = (resource: WithAttributes | undefined, records: (LogRecord & Span)[] | undefined) =>
    list(records).flatMap((record) => (record ? [{ signal, record, resource }] : []));
  if (signal === "logs") {
    return list(resourceLogs).flatMap((group) =>
      list(group?.scopeLogs).flatMap((scope) => telemetryOf(group.resource, scope?.logRecords)),
    );
  }
  return list(resourceSpans).flatMap((group) =>
    list(group?.scopeSpans).flatMap((scope) => telemetryOf(group.resource, scope?.spans)),
  );
}

/** Attributes by name; the first of a name counts. Numbers may be texts, lists are lists of the same. */
export function attributesOf(from: WithAttributes | undefined): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const attribute of Array.isArray(from?.attributes) ? from.attributes : []) {
    const { key, value } = attribute ?? {};
    if (typeof key === "string" && value) {
      fields[key] ??= plainValue(value);
    }
  }
  return fields;
}

function plainValue(value: AnyValue): unknown {
  const values = value.arrayValue?.values;
  if (Array.isArray(values)) {
    return values.map((one) => plainValue(one ?? {}));
  }
  return value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue;
}

/**
 * The fields of an access log's record, in Traefik's names: its attributes, or the JSON text of its body, which Traefik also
 * sends. Numbers may be texts.
 */
export function fieldsOf({ body, ...record }: LogRecord): Record<string, unknown> {
  const attributes = attributesOf(record);
  if (typeof body?.stringValue !== "string" || !body.stringValue.startsWith("{")) {
    return attributes;
  }
  try {
    return { ...attributes, ...JSON.parse(body.stringValue) };
  } catch {
    // A text like any other.
    return attributes;
  }
}
