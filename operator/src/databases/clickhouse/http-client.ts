/** A client of one server's HTTP interface, with the platform's own account. */

import { Agent, request } from "undici";

/** A server and the login. */
export interface Server {
  /** IP address of its pod. */
  ip: string;
  port: number;
  /** Name that its certificate must be for. */
  name: string;
  /** PEM of the authority that must have signed it. */
  authority: string;
  user: string;
  password: string;
}

/** A statement that a server rejected. The error has nothing of the statement's text. */
export class StatementError extends Error {
  override readonly name = "StatementError";
  readonly status: number;
  /** ClickHouse's own code, such as 516. */
  readonly code: string | undefined;

  constructor(status: number, code: string | undefined) {
    super(`the server rejected a statement with ${status}, code ${code ?? "unknown"}`);
    this.status = status;
    this.code = code;
  }
}

/** Timeout of a statement, in milliseconds: one that creates a database waits for the other servers. */
const STATEMENT_MS = 20_000;

/**
 * Runs statements one after the other, over one connection.
 * @returns the reply to each
 * @throws StatementError when the server rejects one; Error when it cannot be reached in time
 */
export async function query(
  { ip, port, name, authority, user, password }: Server,
  statements: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const dispatcher = new Agent({
    connect: { ca: authority, servername: name, timeout: 5_000 },
    headersTimeout: STATEMENT_MS,
    bodyTimeout: STATEMENT_MS,
    connections: 1,
  });
  const host = ip.includes(":") ? `[${ip}]` : ip;
  try {
    const answers: string[] = [];
    for (const statement of statements) {
      const { statusCode, headers, body } = await request(`https://${host}:${port}/`, {
        method: "POST",
        headers: { "x-clickhouse-user": user, "x-clickhouse-key": password },
        body: statement,
        dispatcher,
        signal: AbortSignal.any([signal, AbortSignal.timeout(STATEMENT_MS)]),
      });
      const text = await body.text();
      if (statusCode !== 200) {
        throw new StatementError(statusCode, headers["x-clickhouse-exception-code"]?.toString());
      }
      answers.push(text.trimEnd());
    }
    return answers;
  } finally {
    await dispatcher.destroy();
  }
}
