/** What of OpenTelemetry's logs (opentelemetry-proto v1) is read: names and numbers as its `.proto` files have them. */

import protobuf from "protobufjs";

const { Root } = protobuf;

const anyValue = {
  oneofs: { value: { oneof: ["stringValue", "boolValue", "intValue", "doubleValue", "kvlistValue"] } },
  fields: {
    stringValue: { type: "string", id: 1 },
    boolValue: { type: "bool", id: 2 },
    intValue: { type: "int64", id: 3 },
    doubleValue: { type: "double", id: 4 },
    kvlistValue: { type: "KeyValueList", id: 6 },
  },
};

const repeated = (type: string, id: number) => ({ rule: "repeated", type, id });

const root = Root.fromJSON({
  nested: {
    AnyValue: anyValue,
    KeyValueList: { fields: { values: repeated("KeyValue", 1) } },
    KeyValue: { fields: { key: { type: "string", id: 1 }, value: { type: "AnyValue", id: 2 } } },
    LogRecord: { fields: { body: { type: "AnyValue", id: 5 }, attributes: repeated("KeyValue", 6) } },
    ScopeLogs: { fields: { logRecords: repeated("LogRecord", 2) } },
    ResourceLogs: { fields: { scopeLogs: repeated("ScopeLogs", 2) } },
    ExportLogsServiceRequest: { fields: { resourceLogs: repeated("ResourceLogs", 1) } },
  },
});
const exportRequest = root.lookupType("ExportLogsServiceRequest");

/** A request to `/v1/logs`, in the names of its JSON form. */
export interface ExportRequest {
  resourceLogs?: { scopeLogs?: { logRecords?: LogRecord[] }[] }[];
}

export interface LogRecord {
  body?: AnyValue;
  attributes?: { key?: string; value?: AnyValue }[];
}

interface AnyValue {
  stringValue?: string;
  boolValue?: boolean;
  /** 64 bits: a text in JSON. */
  intValue?: string | number;
  doubleValue?: number;
}

/** @throws Error for bytes that are no such message */
export function decodeProtobuf(bytes: Uint8Array): ExportRequest {
  return exportRequest.toObject(exportRequest.decode(bytes), { longs: String }) as ExportRequest;
}

/** The same message in protobuf, for tests and tools. */
export function encodeProtobuf(request: ExportRequest): Uint8Array {
  return exportRequest.encode(exportRequest.fromObject(request)).finish();
}

/** @throws Error for a text that is no such message */
export function decodeJson(text: string): ExportRequest {
  const found: unknown = JSON.parse(text);
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error("no object");
  return found as ExportRequest;
}

/** All records of a request, whatever is missing or of another kind around them. */
export function recordsOf({ resourceLogs }: ExportRequest): LogRecord[] {
  const list = <T>(value: T[] | undefined): T[] => (Array.isArray(value) ? value : []);
  return list(resourceLogs).flatMap((resource) =>
    list(resource?.scopeLogs).flatMap((scope) => list(scope?.logRecords)),
  );
}

/**
 * The fields of an access log's record, in Traefik's names: its attributes, or the JSON text of its body, which Traefik also
 * sends. Numbers may be texts.
 */
export function fieldsOf({ body, attributes }: LogRecord): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (typeof body?.stringValue === "string" && body.stringValue.startsWith("{")) {
    try {
      Object.assign(fields, JSON.parse(body.stringValue));
    } catch {
      // A text like any other.
    }
  }
  for (const { key, value } of Array.isArray(attributes) ? attributes : []) {
    if (typeof key !== "string" || !value) continue;
    fields[key] ??= value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue;
  }
  return fields;
}
