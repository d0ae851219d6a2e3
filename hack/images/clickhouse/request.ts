import type { IncomingHttpHeaders } from "node:http";
import { failure } from "./errors.ts";

/** A request about a statement, apart from its body. */
export interface QueryRequest {
  user: string;
  password: string;
  /** Of the address or of a form; the body may continue it, or hold its data. */
  query: string;
  queryId?: string;
  database?: string;
  /** Format of an answer whose statement names none. */
  format: string;
  /** Settings of the engine for this statement alone. */
  settings: Record<string, string>;
  /** Values of `{name:Type}` in the statement. */
  parameters: Record<string, string>;
  session?: { id: string; timeoutMs: number; mustExist: boolean };
  /** The answer may be compressed in one of the ways that the client takes. */
  mayCompress: boolean;
}

/** Parameters that are the interface's own; every other one is a setting. */
const OWN = new Set([
  ...["query", "query_id", "user", "password", "quota_key", "database", "default_format", "role"],
  ...["session_id", "session_timeout", "session_check", "compress", "decompress", "enable_http_compression"],
  ...["buffer_size", "wait_end_of_query", "stacktrace", "client_protocol_version", "close_session"],
  ...["send_progress_in_http_headers", "http_headers_progress_interval_ms", "readonly"],
]);

/** A session that nobody asks for anything ends after a minute, and at the most after an hour. */
const SESSION_SECONDS = { default: 60, max: 3600 };

/**
 * Reads what a request asks for.
 * @param parameters of the address, and of the body where that is a form
 * @throws Failure
 */
export function readRequest(headers: IncomingHttpHeaders, parameters: URLSearchParams): QueryRequest {
  const isOn = (name: string): boolean => /^(1|true)$/.test(parameters.get(name) ?? "");
  for (const name of ["compress", "decompress"]) {
    if (isOn(name)) {
      throw failure("NOT_IMPLEMENTED", `Compression by ${name}=1 is not supported by this server.`);
    }
  }
  const settings: Record<string, string> = {};
  const values: Record<string, string> = {};
  for (const [name, value] of parameters) {
    if (name.startsWith("param_")) {
      values[name.slice("param_".length)] = value;
    } else if (!OWN.has(name)) {
      settings[settingName(name)] = value;
    }
  }
  return {
    ...credentials(headers, parameters),
    query: parameters.get("query") ?? "",
    queryId: parameters.get("query_id") || undefined,
    database: parameters.get("database") || header(headers, "x-clickhouse-database"),
    format: parameters.get("default_format") || header(headers, "x-clickhouse-format") || "TabSeparated",
    settings,
    parameters: values,
    session: session(parameters),
    mayCompress: isOn("enable_http_compression"),
  };
}

function settingName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    return name;
  }
  throw failure(
    "BAD_ARGUMENTS",
    `Setting ${JSON.stringify(name)} is neither a builtin setting nor a parameter.`,
  );
}

function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** From headers of ClickHouse's own, or HTTP's, or parameters: of one kind alone. */
function credentials(headers: IncomingHttpHeaders, parameters: URLSearchParams) {
  const own = ["x-clickhouse-user", "x-clickhouse-key"].map((name) => header(headers, name));
  const http = header(headers, "authorization");
  const inAddress = ["user", "password"].map((name) => parameters.get(name));
  const given = [
    own.some((one) => one !== undefined),
    http !== undefined,
    inAddress.some((one) => one !== null),
  ];
  if (given.filter(Boolean).length > 1) {
    throw failure(
      "AUTHENTICATION_FAILED",
      "Invalid authentication: it is not allowed to use several ways of authentication simultaneously.",
    );
  }
  if (http !== undefined) {
    return basic(http);
  }
  const [user, password] = given[0] ? own : inAddress;
  return { user: user || "default", password: password ?? "" };
}

function basic(value: string) {
  const found = /^Basic\s+(\S+)$/i.exec(value);
  const text = found?.[1] === undefined ? undefined : Buffer.from(found[1], "base64").toString();
  const colon = text?.indexOf(":") ?? -1;
  if (text === undefined || colon < 0) {
    throw failure(
      "AUTHENTICATION_FAILED",
      "Invalid authentication: the Authorization header is not understood.",
    );
  }
  return { user: text.slice(0, colon) || "default", password: text.slice(colon + 1) };
}

function session(parameters: URLSearchParams): QueryRequest["session"] {
  const id = parameters.get("session_id");
  if (!id) {
    return undefined;
  }
  const text = parameters.get("session_timeout") ?? String(SESSION_SECONDS.default);
  const seconds = Number(text);
  if (!/^\d+$/.test(text) || seconds > SESSION_SECONDS.max) {
    throw failure("INVALID_SESSION_TIMEOUT", `Invalid session timeout: '${text}'.`);
  }
  const mustExist = parameters.get("session_check") === "1";
  return { id, timeoutMs: seconds * 1000, mustExist };
}
