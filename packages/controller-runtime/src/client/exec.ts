import WebSocket from "ws";
import type { Credentials } from "./credentials.ts";
import {
  abortReason,
  execChannels as channels,
  connectExec,
  connectionError,
  execName,
  exitCodeOf,
  messageBytes,
  refusal,
} from "./exec-connection.ts";

/** What a command that has ended in a container has written. */
export interface ExecResult {
  /** 0 when it succeeded. */
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface ExecRequest {
  /** Address of the pod's `exec` subresource, with the command in its query, beginning with `http`. */
  url: URL;
  credentials: Credentials;
  userAgent: string;
  /** What the command reads; its input is closed then. Of a stream no more is read than the command takes. */
  stdin?: string | AsyncIterable<Uint8Array>;
  /** Receives what the command writes, in order, in place of `ExecResult.stdout`; no more is read until it resolves. */
  onStdout?: (chunk: Buffer) => Promise<void> | void;
  /** Milliseconds that all of it may take. */
  timeoutMs: number;
  signal?: AbortSignal;
}

/** Bytes of output that are kept of each stream: a command that says more is no use here. */
const MAX_OUTPUT = 1024 * 1024;

/** As a shell has it: the command was found and could not be run. */
const NOT_STARTED = 126;

/**
 * Runs a command in a container and waits for its end.
 * @throws KubeError when the apiserver refuses (with its status) or the connection ends before the command; what
 *   `signal` was aborted with
 */
export function exec(request: ExecRequest): Promise<ExecResult> {
  const { stdin, onStdout, timeoutMs, signal } = request;
  const what = execName(request.url);
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(abortReason(signal));
      return;
    }
    const output = { stdout: new Output(), stderr: new Output() };
    let exitCode: number | undefined;
    let consumed = Promise.resolve();
    const socket = connectExec({ ...request, maxPayload: 4 * MAX_OUTPUT });
    const finish = (error?: Error) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      socket.terminate();
      if (error) {
        reject(error);
      } else {
        resolve({ exitCode: exitCode ?? 1, stdout: output.stdout.text(), stderr: output.stderr.text() });
      }
    };
    const fail = (reason: string, message: string, cause?: unknown) =>
      finish(connectionError(what, reason, message, cause));
    const abort = () => finish(signal ? abortReason(signal) : undefined);
    const timer = setTimeout(() => fail("Timeout", `no end within ${timeoutMs} ms`), timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    socket.on("unexpected-response", (_request, response) => {
      void refusal(what, response).then(finish, finish);
    });
    socket.on("error", (error) => fail("NetworkError", error.message, error));
    socket.on("open", () => {
      // A command that ends before it has read everything says so by its exit code.
      sendInput(socket, stdin).catch((error: Error) => socket.readyState === WebSocket.OPEN && finish(error));
    });
    const consume = (chunk: Buffer) => {
      socket.pause();
      consumed = consumed.then(() => onStdout?.(chunk)).then(() => socket.resume());
      consumed.catch(finish);
    };
    socket.on("message", (data) => {
      const message = messageBytes(data);
      const rest = message.subarray(1);
      if (message[0] === channels.stdout) {
        if (onStdout) {
          consume(rest);
        } else {
          output.stdout.add(rest);
        }
      } else if (message[0] === channels.stderr) {
        output.stderr.add(rest);
      } else if (message[0] === channels.error) {
        exitCode = exitCodeOf(rest) ?? NOT_STARTED;
      }
    });
    socket.on("close", () => {
      if (exitCode === undefined) {
        fail("NetworkError", "the connection ended before the command");
      } else {
        consumed.then(() => finish(), finish);
      }
    });
  });
}

/** Sends all of a command's input, each chunk once the one before it has left, and closes it. */
async function sendInput(socket: WebSocket, stdin: ExecRequest["stdin"]): Promise<void> {
  const send = (...parts: Uint8Array[]) =>
    new Promise<void>((resolve, reject) => {
      socket.send(Buffer.concat(parts), (error) => (error ? reject(error) : resolve()));
    });
  const chunks = typeof stdin === "string" ? [Buffer.from(stdin)] : (stdin ?? []);
  for await (const chunk of chunks) {
    await send(Buffer.of(channels.stdin), chunk);
  }
  await send(Buffer.of(channels.close, channels.stdin));
}

/** The first bytes of what a command writes. */
class Output {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  add(chunk: Buffer): void {
    const room = MAX_OUTPUT - this.#size;
    if (room <= 0) {
      return;
    }
    this.#chunks.push(chunk.subarray(0, room));
    this.#size += chunk.length;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }
}
