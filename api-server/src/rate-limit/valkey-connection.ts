import { createHash } from "node:crypto";
import { createClient } from "@redis/client";
import { Backoff } from "@slipway/controller-runtime";
import { sleep, systemClock } from "@slipway/process";
import type { Logger } from "pino";

/** A Lua script that Valkey runs as one step. */
export interface Script {
  readonly source: string;
  /** What `EVALSHA` calls it by. */
  readonly sha1: string;
}

function script(source: string): Script {
  return { source, sha1: createHash("sha1").update(source).digest("hex") };
}

/**
 * KEYS: bucket, and the newest write of an organization and that of its jobs' runs when they are requested. ARGV: limit, milliseconds of the window.
 * Returns whether the call is allowed (1 or 0), the calls counted, the milliseconds until the window ends, and both
 * writes or nil. A window starts with the first call in it, and its key expires when it ends: all by Valkey's own clock.
 * Refused calls are not counted.
 */
export const countCallScript = script(`
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
local allowed = 0
if used < tonumber(ARGV[1]) then
  allowed = 1
  used = redis.call('INCR', KEYS[1])
  if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
local newest, newestRun = false, false
if KEYS[2] then newest = redis.call('GET', KEYS[2]) end
if KEYS[3] then newestRun = redis.call('GET', KEYS[3]) end
return {allowed, used, redis.call('PTTL', KEYS[1]), newest, newestRun}
`);

/** KEYS: bucket. Counts a call less; its window stays as it is, and one that has ended is not begun. */
export const giveBackScript = script(`
if tonumber(redis.call('GET', KEYS[1]) or 0) > 0 then redis.call('DECR', KEYS[1]) end
return 1
`);

/**
 * KEYS: newest write of an organization. ARGV: resourceVersion, milliseconds to keep it. Versions are decimal numbers
 * of any length, so the longer one is the greater.
 */
export const publishScript = script(`
local known = redis.call('GET', KEYS[1])
local version = ARGV[1]
if known and (#known > #version or (#known == #version and known >= version)) then return 0 end
redis.call('SET', KEYS[1], version, 'PX', ARGV[2])
return 1
`);

/** Why a script was not run; the connection is down from here on until it has reconnected. */
class ValkeyAway extends Error {
  override readonly name = "ValkeyAway";
}

export interface ValkeyConnectionOptions {
  /** `redis://`, `rediss://`, `valkey://` or `valkeys://` of one endpoint; no cluster. */
  url: string;
  logger: Logger;
  /** Loaded into every new connection. */
  scripts: readonly Script[];
  /** Proves on a new connection that it can be worked with; rejects when it cannot. */
  probe: (run: RunScript) => Promise<unknown>;
  /** Milliseconds that a script may take. */
  timeoutMs?: number;
}

/** Runs a script. Rejects when Valkey does not answer as it should. */
export type RunScript = (
  script: Script,
  keys: readonly string[],
  args: readonly string[],
) => Promise<unknown>;

const TIMEOUT_MS = 250;
/** Milliseconds for a whole new connection: TCP, TLS, password, scripts, probe. */
const CONNECT_TIMEOUT_MS = 1_500;
const RETRY = { baseMs: 250, maxMs: 2_000 };

const newClient = (url: string) =>
  createClient({
    url: url.replace(/^valkey(s?):/, (_, secure: string) => `redis${secure && "s"}:`),
    name: "slipway-api-server",
    RESP: 2,
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: "disabled",
    // The client's own time limit ends with the writing of a command, and costs an AbortSignal for each.
    commandOptions: { timeout: undefined },
    socket: { connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: false },
  });
type Client = ReturnType<typeof newClient>;

/**
 * A connection to Valkey that is either up or down. What goes wrong on it (it breaks, an answer is late, an error is
 * answered) takes it down immediately, for all calls; a new one is opened in the background, and no call waits for it.
 * The commands of one turn of the event loop leave in one write.
 */
export class ValkeyConnection {
  readonly #options: ValkeyConnectionOptions;
  readonly #timeoutMs: number;
  readonly #stop = new AbortController();
  #client: Client | undefined;
  #connecting: Promise<void> | undefined;
  /** Monotonic milliseconds of the beginning of the present outage. */
  #downSince: number | undefined;

  constructor(options: ValkeyConnectionOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  get isUp(): boolean {
    return this.#client !== undefined;
  }

  /** Connects the first time; resolves when that has succeeded or failed, after at most 1.5 s. */
  async start(): Promise<void> {
    const failure = await this.#connect();
    if (failure !== undefined) {
      this.#down(failure);
    }
  }

  /** @throws ValkeyAway */
  async run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const client = this.#client;
    if (client === undefined) {
      throw new ValkeyAway("no connection");
    }
    try {
      return await this.#withTimeout(this.#timeoutMs, evaluate(client, script, keys, args));
    } catch (error) {
      this.#lose(client, error);
      throw new ValkeyAway("no answer", { cause: error });
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#connecting;
    const client = this.#client;
    this.#client = undefined;
    client?.destroy();
  }

  /** @returns why it failed, undefined when it is up */
  async #connect(): Promise<unknown> {
    const client = newClient(this.#options.url);
    client.on("error", (error) => this.#lose(client, error));
    try {
      await this.#withTimeout(CONNECT_TIMEOUT_MS, this.#prepare(client));
    } catch (error) {
      client.destroy();
      return error;
    }
    if (this.#stop.signal.aborted) {
      client.destroy();
    } else {
      this.#up(client);
    }
    return undefined;
  }

  async #prepare(client: Client): Promise<void> {
    await client.connect();
    for (const { source } of this.#options.scripts) {
      await client.sendCommand(["SCRIPT", "LOAD", source]);
    }
    await this.#options.probe((script, keys, args) => evaluate(client, script, keys, args));
  }

  #up(client: Client): void {
    this.#client = client;
    if (this.#downSince === undefined) {
      return;
    }
    const seconds = Math.round((performance.now() - this.#downSince) / 1000);
    this.#downSince = undefined;
    this.#options.logger.info({ seconds }, "valkey is back");
  }

  #lose(client: Client, error: unknown): void {
    if (this.#client !== client) {
      return;
    }
    this.#client = undefined;
    client.destroy();
    if (!this.#stop.signal.aborted) {
      this.#down(error);
    }
  }

  #down(error: unknown): void {
    if (this.#connecting !== undefined) {
      return;
    }
    this.#downSince = performance.now();
    this.#options.logger.warn({ err: error }, "valkey is away: rate limits are counted in memory");
    this.#connecting = this.#reconnect().finally(() => {
      this.#connecting = undefined;
    });
  }

  async #reconnect(): Promise<void> {
    const backoff = new Backoff(RETRY, Math.random);
    const { signal } = this.#stop;
    while (!signal.aborted && this.#client === undefined) {
      await sleep(systemClock, backoff.next(), signal);
      if (!signal.aborted) {
        await this.#connect();
      }
    }
  }

  #withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // After a long turn of the event loop timers come first: an answer that has already arrived is still read.
      const late = () => setImmediate(() => reject(new Error(`no answer within ${ms} ms`)));
      const timer = setTimeout(late, ms);
      work.then(
        (value) => {
          clearTimeout(timer);
          resolve(value);
        },
        (error) => {
          clearTimeout(timer);
          reject(error);
        },
      );
    });
  }
}

async function evaluate(
  client: Client,
  { sha1, source }: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const rest = [String(keys.length), ...keys, ...args];
  try {
    return await client.sendCommand(["EVALSHA", sha1, ...rest]);
  } catch (error) {
    // The script cache was flushed.
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) {
      throw error;
    }
    return client.sendCommand(["EVAL", source, ...rest]);
  }
}
