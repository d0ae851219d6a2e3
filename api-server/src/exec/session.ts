import { execChannels as channels, type ExecSocket } from "@slipway/controller-runtime";
import type { RawData, WebSocket } from "ws";
import { END_CODES, type EndCode, exitCodeIn, isClientMessage, type Streams } from "./frames.ts";
import { Outbox } from "./outbox.ts";

export interface SessionLimits {
  /** Bytes that wait for the client, or for the instance, before the other side is read no more; each message counts as 1 KiB more. */
  maxBuffered: number;
  /** Milliseconds between pings of both sides. */
  pingMs: number;
  /** How long the client may neither read nor answer a ping, and the apiserver not answer one. */
  stalledMs: number;
  /** How long neither side may send anything. */
  idleMs: number;
  /** How long a session may take. */
  maxDurationMs: number;
  /** How long an ended session may take to close its connections. */
  graceMs: number;
}

/** What became of a session. */
export interface SessionEnd {
  code: EndCode;
  /** Of the command; undefined when it is not known. */
  exitCode: number | undefined;
  /** Bytes of the command's input and outputs. */
  stdinBytes: number;
  stdoutBytes: number;
  stderrBytes: number;
}

export interface SessionOptions {
  client: WebSocket;
  /** Paused. */
  upstream: ExecSocket;
  streams: Streams;
  limits: SessionLimits;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Called once, when the client's connection is closed. */
  onEnd: (end: SessionEnd) => void;
}

/**
 * One client and one command. Messages pass as they are, in order, each way only as fast as the other side takes them: what waits in
 * this process is bounded by `maxBuffered` and one read of a connection each way.
 */
export class ExecSession {
  readonly #options: SessionOptions;
  readonly #startedAt: number;
  #ended: EndCode | undefined;
  #exitCode: number | undefined;
  /** The status of the command's end has come. */
  #hasStatus = false;
  readonly #bytes = { stdin: 0, stdout: 0, stderr: 0 };
  readonly #toClient: Outbox;
  readonly #toUpstream: Outbox;
  #dataAt: number;
  #clientAliveAt: number;
  #upstreamAliveAt: number;
  #pingedAt: number;

  constructor(options: SessionOptions) {
    this.#options = options;
    const { client, upstream, limits } = options;
    const { maxBuffered } = limits;
    this.#toClient = new Outbox({ socket: client, maxBuffered, onTaken: () => this.#clientTook() });
    this.#toUpstream = new Outbox({ socket: upstream, maxBuffered, onTaken: () => this.#upstreamTook() });
    const now = options.now();
    this.#startedAt = now;
    this.#dataAt = now;
    this.#clientAliveAt = now;
    this.#upstreamAliveAt = now;
    this.#pingedAt = now;
    this.#listen();
    upstream.resume();
  }

  /** Its end is decided; its client may not have taken everything yet. */
  get isEnding(): boolean {
    return this.#ended !== undefined;
  }

  /** Ends it for a reason of the platform: nothing passes any more from then on. One that ends already ends for its own reason. */
  end(code: EndCode): void {
    if (this.#ended) {
      return;
    }
    this.#ended = code;
    this.#toClient.clear();
    this.#options.upstream.terminate();
    this.#closeClient(this.#options.limits.graceMs);
  }

  /** Disconnects a client that has not closed. */
  terminate(): void {
    this.#options.client.terminate();
  }

  /** Ends it when a limit in time has passed, and pings both sides when it is time. Called every second or more often. */
  check(): void {
    const { client, upstream, limits, now } = this.#options;
    const at = now();
    // What a side answers is not read while it is paused.
    if (upstream.isPaused) {
      this.#upstreamAliveAt = at;
    }
    if (client.isPaused) {
      this.#clientAliveAt = at;
    }
    if (this.#ended) {
      this.#checkEnded(at);
    } else if (at - this.#startedAt > limits.maxDurationMs) {
      this.end("EXEC_TIME_LIMIT");
    } else if (at - this.#dataAt > limits.idleMs) {
      this.end("EXEC_IDLE");
    } else if (at - this.#clientAliveAt > limits.stalledMs) {
      this.end("EXEC_CLIENT_STALLED");
    } else if (at - this.#upstreamAliveAt > limits.stalledMs) {
      this.end("EXEC_INSTANCE_LOST");
    } else if (at - this.#pingedAt >= limits.pingMs) {
      this.#pingedAt = at;
      ping(client);
      ping(upstream);
    }
  }

  /** The command is over, and its client has not taken everything yet. */
  #checkEnded(at: number): void {
    const { client, limits } = this.#options;
    const { maxDurationMs, stalledMs } = limits;
    if (at - this.#clientAliveAt > stalledMs || at - this.#startedAt > maxDurationMs + stalledMs) {
      this.#ended = "EXEC_CLIENT_STALLED";
      client.terminate();
    }
  }

  #listen(): void {
    const { client, upstream, now, onEnd } = this.#options;
    client.on("message", (data, isBinary) => this.#fromClient(messageOf(data), isBinary));
    client.on("pong", () => {
      this.#clientAliveAt = now();
    });
    client.on("error", (error) => {
      const isTooLarge = (error as NodeJS.ErrnoException).code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
      this.#ended ??= isTooLarge ? "EXEC_MESSAGE_TOO_LARGE" : "EXEC_CLIENT_CLOSED";
    });
    client.once("close", () => {
      this.#ended ??= "EXEC_CLIENT_CLOSED";
      this.#closeUpstream();
      const { stdin, stdout, stderr } = this.#bytes;
      onEnd({
        code: this.#ended,
        exitCode: this.#exitCode,
        stdinBytes: stdin,
        stdoutBytes: stdout,
        stderrBytes: stderr,
      });
    });
    upstream.on("message", (data) => this.#fromUpstream(messageOf(data)));
    upstream.on("pong", () => {
      this.#upstreamAliveAt = now();
    });
    // Its end follows, and says all that there is to say.
    upstream.on("error", () => undefined);
    upstream.once("close", () => this.#upstreamClosed());
  }

  #fromClient(message: Buffer, isBinary: boolean): void {
    const { client, upstream, streams, now } = this.#options;
    if (this.#ended || upstream.readyState !== upstream.OPEN) {
      return;
    }
    if (!isBinary || !isClientMessage(message, streams)) {
      this.end("EXEC_PROTOCOL_ERROR");
      return;
    }
    this.#clientAliveAt = now();
    this.#dataAt = this.#clientAliveAt;
    if (message[0] === channels.stdin) {
      this.#bytes.stdin += message.length - 1;
    }
    this.#toUpstream.send(message);
    if (this.#toUpstream.isFull) {
      client.pause();
    }
  }

  /** The command's connection has taken a message. */
  #upstreamTook(): void {
    const { client, now } = this.#options;
    this.#dataAt = now();
    if (client.isPaused && this.#toUpstream.hasRoom) {
      client.resume();
    }
  }

  #fromUpstream(message: Buffer): void {
    const { client, upstream, now } = this.#options;
    const [channel] = message;
    if (this.#ended || channel === undefined || client.readyState !== client.OPEN) {
      return;
    }
    this.#upstreamAliveAt = now();
    if (channel === channels.stdout) {
      this.#bytes.stdout += message.length - 1;
    } else if (channel === channels.stderr) {
      this.#bytes.stderr += message.length - 1;
    } else if (channel === channels.error) {
      this.#exitCode = exitCodeIn(message.subarray(1));
      this.#hasStatus = true;
    }
    this.#toClient.send(message);
    if (this.#toClient.isFull) {
      upstream.pause();
    }
  }

  /** The client's connection has taken a message. */
  #clientTook(): void {
    const { upstream, now } = this.#options;
    this.#clientAliveAt = now();
    this.#dataAt = this.#clientAliveAt;
    if (upstream.isPaused && this.#toClient.hasRoom) {
      upstream.resume();
    }
  }

  /** The command is over: the client is closed once it has taken everything, however long that takes it. */
  #upstreamClosed(): void {
    this.#ended ??= this.#hasStatus ? "EXEC_EXITED" : "EXEC_INSTANCE_LOST";
    this.#toClient.whenEmpty(() => this.#closeClient(this.#options.limits.stalledMs));
  }

  /** A client that does not close is disconnected: what the kernel has taken for it may be lost then. */
  #closeClient(withinMs: number): void {
    const { client } = this.#options;
    if (!this.#ended || client.readyState !== client.OPEN) {
      return;
    }
    // Its answer to the close is among what is read.
    client.resume();
    client.close(END_CODES[this.#ended], this.#ended);
    const timer = setTimeout(() => client.terminate(), withinMs);
    client.once("close", () => clearTimeout(timer));
  }

  /** Input that is under way still reaches the command. */
  #closeUpstream(): void {
    const { upstream, limits } = this.#options;
    if (upstream.readyState === upstream.CLOSED) {
      return;
    }
    upstream.resume();
    this.#toUpstream.whenEmpty(() => upstream.close(1000));
    const timer = setTimeout(() => upstream.terminate(), limits.graceMs);
    upstream.once("close", () => clearTimeout(timer));
  }
}

function ping(socket: WebSocket): void {
  if (socket.readyState === socket.OPEN) {
    socket.ping();
  }
}

/** Messages come as one buffer each: `binaryType` is left as it is. */
const messageOf = (data: RawData): Buffer => data as Buffer;
