import type { Body } from "./body.ts";
import type { User } from "./config.ts";
import type { Connections, Lease } from "./connections.ts";
import { failure, failureOf } from "./errors.ts";
import type { Connection, Native } from "./native.ts";
import type { QueryRequest } from "./request.ts";
import { pieces } from "./rows.ts";
import { parseStatement, type Statement } from "./statement.ts";

/** Text of a statement without its data: no more than this. */
const TEXT_BYTES = 16 * 1024 * 1024;
/** Within this much of a body an INSERT's own data begin, when it has any. */
const HEAD_BYTES = 256 * 1024;

/** Formats whose parts, one behind the other, are the whole: they have no head and no foot. */
const PLAIN =
  /^(JSONEachRow|JSONLines|NDJSON|JSONStringsEachRow|JSONCompactEachRow|JSONCompactStringsEachRow|TabSeparated|TabSeparatedRaw|TSV|TSVRaw|CSV|RowBinary|Native)$/i;

/** What a statement has come to. */
export interface Answer {
  /** Of the rows; undefined where there are none. */
  format?: string;
  chunks: AsyncIterable<Uint8Array>;
  summary: Summary;
  /** To be called once nobody reads any more, whether all was read or not. */
  close: () => Promise<void>;
}

/** Counts of ClickHouse's `X-ClickHouse-Summary`, as far as they are known when an answer begins. */
export interface Summary {
  readRows: number;
  readBytes: number;
  writtenRows: number;
  writtenBytes: number;
  elapsedNs: number;
}

export interface Execution {
  native: Native;
  connections: Connections;
  /** Carries out statements about users; false for all others. */
  changeUsers: (text: string, by: User) => Promise<boolean>;
}

/**
 * Carries out the statement of a request.
 * @param mayWrite false for GET requests
 * @throws Failure before there is an answer; afterwards `chunks` throws it
 */
export async function execute(
  { native, connections, changeUsers }: Execution,
  { request, user, body, mayWrite }: { request: QueryRequest; user: User; body: Body; mayWrite: boolean },
): Promise<Answer> {
  const { text, statement, data } = await readStatement(request.query, body);
  if (!mayWrite && !statement.readOnly) {
    throw failure(
      "READONLY",
      "Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries.",
    );
  }
  if (await changeUsers(text, user)) {
    return { ...empty, summary: noCounts() };
  }
  const lease = await leaseFor(connections, request, user);
  const start = process.hrtime.bigint();
  try {
    const changed = await prepare(native, lease.connection, request, user);
    const dirty = changed || statement.changesSession || / TEMPORARY$/.test(statement.verb);
    if (statement.insert) {
      const summary = await insert(native, lease.connection, text, statement.insert, data());
      lease.release(!dirty);
      return { ...empty, summary: { ...summary, elapsedNs: Number(process.hrtime.bigint() - start) } };
    }
    const format = statement.format ?? request.format;
    if (statement.gives && PLAIN.test(format)) {
      return await streamed(native, lease, text, format, dirty);
    }
    const result = await native.QueryAsyncConnection(lease.connection, text, format);
    lease.release(!dirty);
    return {
      ...empty,
      format: statement.gives ? format : undefined,
      chunks: only(result.bytes),
      summary: {
        ...noCounts(),
        readRows: result.rowsRead,
        readBytes: result.bytesRead,
        writtenRows: result.rowsWritten ?? 0,
        writtenBytes: result.bytesWritten ?? 0,
        elapsedNs: Number(process.hrtime.bigint() - start),
      },
    };
  } catch (error) {
    lease.release(false);
    throw failureOf(error);
  }
}

/** The statement is in the address, in the body, or begins in the one and continues in the other. */
async function readStatement(
  query: string,
  body: Body,
): Promise<{ text: string; statement: Statement; data: () => AsyncGenerator<Buffer> }> {
  const inAddress = query === "" ? undefined : parseStatement(query);
  if (inAddress?.insert) {
    const { dataAt } = inAddress.insert;
    const begun = Buffer.from(query.slice(dataAt));
    return { text: query.slice(0, dataAt), statement: inAddress, data: () => joined(begun, body.rest(0)) };
  }
  const head = await body.start(HEAD_BYTES);
  const before = query === "" ? "" : `${query}\n`;
  // One character for each byte: offsets stay what they are, whatever the data are.
  const latin = Buffer.from(before).toString("latin1") + head.bytes.toString("latin1");
  const begins = head.whole ? parseStatement(latin) : beginOf(latin);
  if (begins?.insert) {
    const all = Buffer.from(latin, "latin1");
    const { dataAt } = begins.insert;
    const text = all.subarray(0, dataAt).toString();
    return { text, statement: begins, data: () => body.rest(dataAt - Buffer.byteLength(before)) };
  }
  const rest = (await body.all(TEXT_BYTES)).toString();
  const text = rest === "" ? query : before + rest;
  return { text, statement: parseStatement(text), data: nothing };
}

/** The statement of a text that may not be all of it; undefined when that is unknown. */
function beginOf(text: string): Statement | undefined {
  try {
    return parseStatement(text);
  } catch {
    return undefined;
  }
}

function leaseFor(connections: Connections, { session }: QueryRequest, user: User): Promise<Lease> {
  return session
    ? connections.session(`${user.name}\n${session.id}`, session.id, session)
    : connections.lease();
}

/** Brings a connection to where the statement is to run. @returns whether that changed it */
async function prepare(native: Native, at: Connection, request: QueryRequest, user: User): Promise<boolean> {
  const { database, settings, parameters } = request;
  const changes = [
    ...Object.entries(settings).map(([name, value]) => `${name} = ${literal(value)}`),
    ...Object.entries(parameters).map(
      ([name, value]) => `${identifier(`param_${name}`)} = ${literal(value)}`,
    ),
  ];
  // Each statement takes a while of its own, however little it does.
  const statements = [
    ...(user.readOnly ? ["SET readonly = 1"] : []),
    ...(database === undefined ? [] : [`USE ${identifier(database)}`]),
    ...(changes.length === 0 ? [] : [`SET ${changes.join(", ")}`]),
  ];
  for (const one of statements) {
    await native.QueryAsyncConnection(at, one, "Null");
  }
  return statements.length > 0;
}

function identifier(name: string): string {
  return `\`${name.replace(/[\\`]/g, "\\$&")}\``;
}

function literal(value: string): string {
  return `'${value.replace(/[\\']/g, "\\$&")}'`;
}

async function insert(
  native: Native,
  at: Connection,
  text: string,
  { format }: { format: string },
  data: AsyncIterable<Buffer>,
): Promise<Summary> {
  const summary = noCounts();
  for await (const piece of pieces(format, data)) {
    const done = await native.InsertRawAsyncConnection(at, text.trimEnd(), piece, false);
    summary.writtenRows += done.rowsWritten;
    summary.writtenBytes += done.bytesWritten;
  }
  return summary;
}

/** Waits for the first rows, because until then a failure can still be reported by the status. */
async function streamed(
  native: Native,
  lease: Lease,
  text: string,
  format: string,
  dirty: boolean,
): Promise<Answer> {
  const cursor = native.StreamQuery(lease.connection, text, format);
  let last = native.StreamFetch(cursor);
  let isDone = false;
  /** A cursor is given up between two of its pieces alone. */
  const close = async (): Promise<void> => {
    await last.catch(() => undefined);
    native.StreamCancel(cursor);
    lease.release(isDone && !dirty);
  };
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = await last.catch((error: unknown) => {
        throw failureOf(error);
      });
      isDone = piece.done;
      if (isDone) {
        return;
      }
      yield piece.bytes;
      last = native.StreamFetch(cursor);
    }
  };
  try {
    await last;
  } catch (error) {
    native.StreamCancel(cursor);
    throw error;
  }
  return { format, chunks: chunks(), summary: noCounts(), close };
}

function noCounts(): Summary {
  return { readRows: 0, readBytes: 0, writtenRows: 0, writtenBytes: 0, elapsedNs: 0 };
}

async function* nothing(): AsyncGenerator<never> {}

const empty = { chunks: nothing(), close: async () => {} };

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) {
    yield bytes;
  }
}

async function* joined(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) {
    yield first;
  }
  yield* rest;
}
