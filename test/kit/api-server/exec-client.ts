import { createHash } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";

/** A client of `GET /v1/project/:id/instances/:instance/exec`, as a program of a user has it: the channels of Kubernetes' subprotocol. */

export const PROTOCOL = "v5.channel.k8s.io";

export interface ExecQuery {
  command: readonly string[];
  stdin?: boolean;
  tty?: boolean;
}

/** What a session was in the end. */
export interface ExecOutcome {
  /** Of the command; undefined when no status came. */
  exitCode: number | undefined;
  stdout: string;
  stderr: string;
  /** Of all output, also of what is not kept. */
  stdoutBytes: number;
  stdoutSha256: string;
  /** How the connection was closed. */
  closeCode: number;
  closeReason: string;
}

/** The answer in place of a WebSocket. */
export class ExecRefused extends Error {
  readonly status: number;
  readonly body: { code?: string; [member: string]: unknown };

  constructor(status: number, body: ExecRefused["body"]) {
    super(`${status} ${body.code}`);
    this.status = status;
    this.body = body;
  }
}

/** Characters of each output that are kept. */
const KEPT = 64 * 1024;

export class ExecClient {
  readonly socket: WebSocket;
  readonly #ended: Promise<ExecOutcome>;
  #stdout = "";
  #stderr = "";
  #bytes = 0;
  #exitCode: number | undefined;
  readonly #hash = createHash("sha256");

  /**
   * Connects, and resolves once the command runs.
   * @param url of the API, beginning with `http`
   * @throws ExecRefused with the answer in place of a WebSocket
   */
  static async connect(
    url: string,
    project: string,
    instance: string,
    query: ExecQuery,
    headers: Readonly<Record<string, string>> = {},
    protocols: readonly string[] = [PROTOCOL],
  ): Promise<ExecClient> {
    const address = `${url.replace(/^http/, "ws")}/v1/project/${project}/instances/${instance}/exec?${queryOf(query)}`;
    const client = new ExecClient(
      new WebSocket(address, [...protocols], { headers, perMessageDeflate: false }),
    );
    await client.#opened();
    return client;
  }

  /** Connects, sends an input, if there is one, and waits for the end. */
  static async run(
    url: string,
    project: string,
    instance: string,
    query: ExecQuery & { input?: string | Buffer },
    headers: Readonly<Record<string, string>>,
  ): Promise<ExecOutcome> {
    const { input, ...rest } = query;
    const stdin = input !== undefined;
    const client = await ExecClient.connect(url, project, instance, { ...rest, stdin }, headers);
    if (input !== undefined) {
      client.send(input);
      client.endInput();
    }
    return client.ended();
  }

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => this.#receive(data as Buffer));
    socket.on("error", () => undefined);
    this.#ended = once(socket, "close").then(([code, reason]) => ({
      exitCode: this.#exitCode,
      stdout: this.#stdout,
      stderr: this.#stderr,
      stdoutBytes: this.#bytes,
      stdoutSha256: this.#hash.digest("hex"),
      closeCode: Number(code),
      closeReason: String(reason),
    }));
  }

  /** What the command has written so far. */
  get stdout(): string {
    return this.#stdout;
  }

  send(input: string | Buffer): void {
    this.socket.send(Buffer.concat([Buffer.of(0), Buffer.from(input)]));
  }

  endInput(): void {
    this.socket.send(Buffer.of(255, 0));
  }

  resize(columns: number, rows: number): void {
    const size = JSON.stringify({ Width: columns, Height: rows });
    this.socket.send(Buffer.concat([Buffer.of(4), Buffer.from(size)]));
  }

  ended(): Promise<ExecOutcome> {
    return this.#ended;
  }

  close(): Promise<ExecOutcome> {
    this.socket.close();
    return this.#ended;
  }

  #opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("error", reject);
      this.socket.once(
        "unexpected-response",
        (_request, response) => void refusal(response).then(reject, reject),
      );
    });
  }

  #receive(message: Buffer): void {
    const rest = message.subarray(1);
    if (message[0] === 1) {
      this.#bytes += rest.length;
      this.#hash.update(rest);
      this.#stdout += this.#stdout.length < KEPT ? rest.toString("latin1") : "";
    } else if (message[0] === 2) {
      this.#stderr += this.#stderr.length < KEPT ? rest.toString("latin1") : "";
    } else if (message[0] === 3) {
      const status = JSON.parse(rest.toString());
      const cause = status.details?.causes?.find(({ reason }: { reason: string }) => reason === "ExitCode");
      this.#exitCode = status.status === "Success" ? 0 : cause && Number(cause.message);
    }
  }
}

async function refusal(response: IncomingMessage): Promise<ExecRefused> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
  }
  const text = Buffer.concat(chunks).toString();
  return new ExecRefused(response.statusCode ?? 0, text.startsWith("{") ? JSON.parse(text) : { text });
}

function queryOf({ command, stdin, tty }: ExecQuery): string {
  const query = new URLSearchParams();
  for (const word of command) {
    query.append("command", word);
  }
  for (const [name, value] of Object.entries({ stdin, tty })) {
    if (value) {
      query.set(name, "true");
    }
  }
  return query.toString();
}
