import type { DrainedLine, DrainPosition, SavedPosition } from "@slipway/analytics";
import { Backoff } from "@slipway/controller-runtime";
import type { LogDrain } from "@slipway/crds";
import { DeliveryError, type OutgoingLine, type Receiver } from "./receiver.ts";

/** Lines of one organization in the order in which the store got them. */
export interface LineSource {
  page(
    after: DrainPosition,
    to: number,
    most: { lines: number; bytes: number },
    signal: AbortSignal,
  ): Promise<DrainedLine[]>;
  /** When the next line was stored; undefined when there is none until `to`. */
  next(after: DrainPosition, to: number): Promise<number | undefined>;
  /** How many lines are between. */
  count(after: DrainPosition, to: number): Promise<number>;
}

export interface DrainBounds {
  /** Lines and bytes of text of one batch. */
  lines: number;
  bytes: number;
  /** Milliseconds of stored lines among which one page is found: what the store sorts for it. */
  windowMs: number;
  /** Batches, and milliseconds, after which others have a turn. A drain whose turn took longer is a slow one. */
  batches: number;
  turnMs: number;
  /** Milliseconds for one batch, and between attempts: first and longest. */
  timeoutMs: number;
  backoffMs: readonly [number, number];
  /** Milliseconds behind the store from which on lines are left out. */
  maxLagMs: number;
}

export const BOUNDS: DrainBounds = {
  lines: 1_000,
  bytes: 256 * 1024,
  windowMs: 60_000,
  batches: 4,
  turnMs: 5_000,
  timeoutMs: 20_000,
  backoffMs: [1_000, 60_000],
  maxLagMs: 7 * 86_400_000,
};

/** What one turn did. */
export interface Turn {
  delivered: number;
  refused: number;
  skipped: number;
  failure: DeliveryError | undefined;
}

/** Behind which line a reader is that has this one. */
export const behind = (line: DrainedLine): DrainPosition => [
  line.storedAt,
  line.project,
  line.at,
  line.instance,
  line.container,
  line.file,
  line.offset,
];

/** Where one drain is in its organization's lines, and its attempts to go on. */
export class Drain {
  readonly uid: string;
  readonly organization: string;
  resource: LogDrain;
  /** Undefined until something was sent. */
  outcome: DeliveryError | "delivered" | undefined;
  /** Whether the Secret and what it has can be used; undefined until that was tried. */
  readiness: DeliveryError | "configured" | undefined;
  isBusy = false;
  /** Whether its last turn took long: its receiver answers late. */
  isSlow = false;
  /** Whether it has something that is not saved. */
  isDirty = false;
  position: DrainPosition;
  refused: number;
  skipped: number;
  /** Up to where nothing is left to send. */
  #caughtUpTo = 0;
  #retryAt = 0;
  readonly #backoff: Backoff;
  readonly #bounds: DrainBounds;

  constructor(
    resource: LogDrain,
    organization: string,
    saved: SavedPosition | undefined,
    bounds: DrainBounds = BOUNDS,
  ) {
    const { uid = "", creationTimestamp = "" } = resource.metadata;
    this.uid = uid;
    this.resource = resource;
    this.organization = organization;
    // The moment has whole seconds: nothing of its own second is missed.
    this.position = saved?.position ?? [String(Date.parse(creationTimestamp) - 1)];
    this.refused = saved?.refused ?? 0;
    this.skipped = saved?.skipped ?? 0;
    this.#bounds = bounds;
    const [baseMs, maxMs] = bounds.backoffMs;
    this.#backoff = new Backoff({ baseMs, maxMs }, Math.random);
  }

  get storedAt(): number {
    return Number(this.position[0]);
  }

  /** Whether lines may be there that were not sent. */
  isBehind(horizon: number): boolean {
    return this.#caughtUpTo < horizon;
  }

  get caughtUpTo(): number {
    return this.#caughtUpTo;
  }

  /** Nothing came until then. Only of a drain that had nothing to send before. */
  passIdle(horizon: number): void {
    this.#caughtUpTo = horizon;
    this.position = [String(horizon)];
  }

  /** Whether the time of its next attempt has come. */
  isDue(now: number): boolean {
    return !this.isBusy && now >= this.#retryAt;
  }

  /** Milliseconds by which it is behind. */
  lagMs(horizon: number): number {
    return this.isBehind(horizon) ? Math.max(0, horizon - this.storedAt) : 0;
  }

  /** Whether it has sent nothing since its creation, which is by the clock of the apiserver and not of the store. */
  get isNew(): boolean {
    return this.#caughtUpTo === 0 && this.position.length === 1;
  }

  /** It is tried now, with what it is configured with now. */
  retryNow(): void {
    this.#retryAt = 0;
    this.#backoff.reset();
  }

  /** The store's clock was set back: what is stored since gets times that were passed already. Lines are sent again. */
  rewind(to: number): void {
    if (this.storedAt > to) {
      this.position = [String(to)];
      this.isDirty = true;
    }
    this.#caughtUpTo = Math.min(this.#caughtUpTo, to);
  }

  /**
   * Sends what is there until the horizon, a few batches at most. A batch that fails is sent again later, whole.
   * @param now milliseconds, by the process's own clock
   * @throws StoreUnavailable
   */
  async deliver(
    {
      source,
      receiver,
      horizon,
      nameOf,
      now,
    }: {
      source: LineSource;
      receiver: () => Promise<Receiver>;
      horizon: number;
      nameOf: (project: string) => string;
      now: () => number;
    },
    signal: AbortSignal,
  ): Promise<Turn> {
    const { lines, bytes, windowMs, batches, turnMs } = this.#bounds;
    const began = now();
    const turn: Turn = {
      delivered: 0,
      refused: 0,
      skipped: await this.#skip(source, horizon),
      failure: undefined,
    };
    for (let batch = 0; batch < batches && now() - began < turnMs && !signal.aborted; ) {
      const to = Math.min(horizon, this.storedAt + windowMs);
      const page = await source.page(this.position, to, { lines, bytes }, signal);
      if (page.length === 0) {
        const next = to < horizon ? await source.next(this.position, horizon) : undefined;
        if (next === undefined) {
          this.passIdle(horizon);
          break;
        }
        this.position = [String(next - 1)];
        continue;
      }
      const outgoing = page.map((line) => ({
        ...line,
        organization: this.organization,
        projectName: nameOf(line.project),
      }));
      try {
        const { refused } = await this.#send(await receiver(), outgoing, signal);
        turn.refused += refused;
        turn.delivered += page.length - refused;
        this.refused += refused;
        this.position = behind(page.at(-1) as DrainedLine);
        this.isDirty = true;
        this.outcome =
          refused === page.length
            ? new DeliveryError("ReceiverRefused", "the receiver refuses the lines for good")
            : "delivered";
        this.#backoff.reset();
        batch += 1;
      } catch (error) {
        if (!(error instanceof DeliveryError)) {
          throw error;
        }
        if (!signal.aborted) {
          turn.failure = error;
          this.fail(error, now());
        }
        break;
      }
    }
    this.isSlow = now() - began >= turnMs;
    return turn;
  }

  /** Records a failure, and when it is tried again. */
  fail(error: DeliveryError, now: number): void {
    const [, longest] = this.#bounds.backoffMs;
    // Not longer than the longest of our own: a receiver that names a year would be away for good.
    const wished = Math.min(error.retryAfterMs ?? 0, longest);
    this.#retryAt = now + Math.max(wished, this.#backoff.next());
    if (error.reason === "SecretNotFound" || error.reason === "SecretInvalid") {
      this.readiness = error;
    } else {
      this.outcome = error;
    }
  }

  #send(
    receiver: Receiver,
    lines: readonly OutgoingLine[],
    signal: AbortSignal,
  ): Promise<{ refused: number }> {
    return receiver.send(lines, AbortSignal.any([signal, AbortSignal.timeout(this.#bounds.timeoutMs)]));
  }

  /** Leaves out what is older than may be sent. */
  async #skip(source: LineSource, horizon: number): Promise<number> {
    const oldest = horizon - this.#bounds.maxLagMs;
    if (this.storedAt >= oldest) {
      return 0;
    }
    const skipped = await source.count(this.position, oldest);
    this.position = [String(oldest)];
    this.skipped += skipped;
    this.isDirty ||= skipped > 0;
    return skipped;
  }
}
