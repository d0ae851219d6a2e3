import type { IncomingMessage } from "node:http";
import WebSocket, { type ClientOptions, type RawData } from "ws";
import type { Credentials } from "./credentials.ts";
import { KubeError } from "./errors.ts";
import type { StatusBody } from "./types.ts";

/** The WebSocket of a command in a container: messages whose first byte is their channel. */
export type ExecSocket = WebSocket;

/** Version 5 alone can close a command's input (Kubernetes 1.30 and later). */
export const EXEC_PROTOCOL = "v5.channel.k8s.io";

/**
 * First byte of each message, as `k8s.io/apimachinery/pkg/util/remotecommand` has them. `error` carries the `metav1.Status` of the
 * command's end, `resize` the size of its terminal as JSON, `close` the number of the channel whose end the client reports.
 */
export const execChannels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** Of each side's socket. One message in each turn of the event loop: many tiny ones in one read do not keep it from all else. */
export const EXEC_SOCKET_OPTIONS = { perMessageDeflate: false, allowSynchronousEvents: false } as const;

const HANDSHAKE_MS = 10_000;

export interface ExecConnection {
  /** Address of the pod's `exec` subresource, with the command in its query, beginning with `http`. */
  url: URL;
  credentials: Credentials;
  userAgent: string;
  /** Milliseconds until the apiserver must have accepted; 10,000 at most. */
  timeoutMs: number;
  /** Bytes of the largest message that it may send. */
  maxPayload: number;
}

/** Connects to a command; the socket is not open yet. */
export function connectExec(connection: ExecConnection): ExecSocket {
  const { url, credentials, userAgent, timeoutMs, maxPayload } = connection;
  const address = new URL(url);
  address.protocol = url.protocol === "http:" ? "ws:" : "wss:";
  const options: ClientOptions = {
    ...(credentials.tls as ClientOptions),
    headers: { ...credentials.headers, "user-agent": userAgent },
    handshakeTimeout: Math.min(timeoutMs, HANDSHAKE_MS),
    maxPayload,
    ...EXEC_SOCKET_OPTIONS,
  };
  return new WebSocket(address, [EXEC_PROTOCOL], options);
}

/**
 * The same, once the apiserver has accepted: the command runs. The socket is paused, so that nothing is lost until the caller
 * listens to it and resumes it; its `error` events are to be listened for, too.
 * @throws KubeError when the apiserver refuses (with its status) or does not answer; what `signal` was aborted with before that
 */
export function openExec(connection: ExecConnection, signal?: AbortSignal): Promise<ExecSocket> {
  const what = execName(connection.url);
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(abortReason(signal));
      return;
    }
    const socket = connectExec(connection);
    const over = () => {
      signal?.removeEventListener("abort", abort);
      socket.off("open", opened).off("error", failed);
    };
    const fail = (error: Error) => {
      over();
      socket.on("error", () => undefined);
      socket.terminate();
      reject(error);
    };
    const failed = (error: Error) => fail(connectionError(what, "NetworkError", error.message, error));
    const opened = () => {
      over();
      socket.pause();
      resolve(socket);
    };
    const abort = () => fail(abortReason(signal as AbortSignal));
    signal?.addEventListener("abort", abort, { once: true });
    socket.once("unexpected-response", (_request, response) => void refusal(what, response).then(fail, fail));
    socket.on("open", opened).on("error", failed);
  });
}

/** How an error names a command: never by its words. */
export const execName = (url: URL): string => `exec ${url.pathname}`;

export const connectionError = (what: string, reason: string, message: string, cause?: unknown): KubeError =>
  new KubeError({ status: 0, reason, message: `${what}: ${message}`, cause });

/**
 * The last message is a `metav1.Status`: success, or a failure whose cause `ExitCode` is the command's.
 * @returns undefined when it has none: the command could not be started, or its end is not known
 */
export function exitCodeOf(message: Buffer): number | undefined {
  const status = JSON.parse(message.toString("utf8")) as StatusBody;
  if (status.status === "Success") {
    return 0;
  }
  const code = status.details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
  return code === undefined ? undefined : Number(code);
}

export function messageBytes(data: RawData): Buffer {
  if (Array.isArray(data)) {
    return Buffer.concat(data);
  }
  return data instanceof ArrayBuffer ? Buffer.from(data) : data;
}

/** Bytes of an answer that is read for its error. */
const MAX_REFUSAL = 64 * 1024;

/** An answer other than an upgrade: the apiserver's own error. */
export async function refusal(what: string, response: IncomingMessage): Promise<KubeError> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_REFUSAL) {
      break;
    }
  }
  const status = response.statusCode ?? 0;
  let body: StatusBody | undefined;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as StatusBody;
  } catch {
    body = undefined;
  }
  return new KubeError({
    status,
    reason: body?.reason ?? `HTTP${status}`,
    message: `${what}: ${status} ${body?.message ?? "no Status in the answer"}`,
    ...(body ? { body } : {}),
  });
}

export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new DOMException("aborted", "AbortError");
}
