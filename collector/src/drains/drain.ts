import {
  type DrainedLine,
  type DrainPosition,
  type SavedPosition,
  StoreUnavailable,
} from "@slipway/analytics";
import { Backoff } from "@slipway/controller-runtime";
import type { LogDrain } from "@slipway/crds";
import { BOUNDS, type DrainBounds } from "./bounds.ts";
import { behind, type LineSource } from "./line-source.ts";
import { DeliveryError, type OutgoingLine, type Receiver } from "./receiver.ts";

/** What one turn did. */
export interface Turn {
  delivered: number;
  refused: number;
  skipped: number;
  failure: DeliveryError | undefined;
}

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
  /** Since when it could have had a turn, and has none; undefined while nothing is due. */
  #dueSince: number | undefined;
  /** How often the store's clock was set back: what was read before is no progress after. */
  #epoch = 0;
  #windowMs: number;
  readonly #ended = new AbortController();
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
    this.#windowMs = bounds.windowMs;
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

  /** Whether its receiver failed or took long: such drains wait for each other alone. */
  get waitsApart(): boolean {
    return this.isSlow || this.outcome instanceof DeliveryError || this.readiness instanceof DeliveryError;
  }

  /** Aborts once the drain is deleted. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** It is deleted: what is under way is cut off. */
  end(): void {
    this.#ended.abort();
  }

  /** Whether the time of its next attempt has come. */
  isDue(now: number): boolean {
    return !this.isBusy && now >= this.#retryAt;
  }

  /** It waits for a turn from now on. */
  queue(now: number): void {
    this.isBusy = true;
    this.#dueSince = now;
  }

  /** Its turn begins. */
  begin(): void {
    this.#dueSince = undefined;
  }

  /** Milliseconds for which it waits for a turn, whatever its receiver does. */
  waitedMs(now: number): number {
    return this.#dueSince === undefined ? 0 : now - this.#dueSince;
  }

  /** Milliseconds by which it is behind. */
  lagMs(horizon: number): number {
    return this.isBehind(horizon) ? Math.max(0, horizon - this.storedAt) : 0;
  }

  /** Whether it has sent nothing since its creation, which is by the clock of the apiserver and not of the store. */
  get isNew(): boolean {
    return this.#caughtUpTo === 0 && this.position.length === 1;
  }

  /** Takes over its resource; one with another spec is tried now. */
  change(resource: LogDrain): void {
    if (this.resource.metadata.generation !== resource.metadata.generation) {
      this.#retryAt = 0;
      this.#backoff.reset();
      this.readiness = undefined;
    }
    this.resource = resource;
  }

  /** Nothing was sent yet, and the clock of the apiserver, which its creation is by, is ahead of the store's. */
  beginBefore(now: number): void {
    if (this.storedAt > now) {
      this.rewind(now);
    }
  }

  /**
   * The store's clock was set back: what is stored since gets times that were passed already. Lines are sent again, also those that are on their
   * way now.
   */
  rewind(to: number): void {
    this.#epoch += 1;
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
    const { lines, bytes, batches, turnMs } = this.#bounds;
    const began = now();
    const epoch = this.#epoch;
    const isCurrent = () => this.#epoch === epoch && !signal.aborted;
    const turn: Turn = { delivered: 0, refused: 0, skipped: 0, failure: undefined };
    turn.skipped = await this.#skip(source, horizon, isCurrent);
    for (let batch = 0; batch < batches && now() - began < turnMs && isCurrent(); ) {
      const to = Math.min(horizon, this.storedAt + this.#windowMs);
      const page = await this.#page(() => source.page(this.position, to, { lines, bytes }, signal));
      if (page.length === 0) {
        const next = to < horizon ? await source.next(this.position, horizon) : undefined;
        if (!isCurrent()) {
          break;
        }
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
        if (this.#epoch === epoch) {
          this.#pass(page, refused);
        }
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

  /** A page; of one that takes the store too much the next has half the time, and longer ones once that is enough. */
  async #page(read: () => Promise<DrainedLine[]>): Promise<DrainedLine[]> {
    try {
      const page = await read();
      this.#windowMs = Math.min(2 * this.#windowMs, this.#bounds.windowMs);
      return page;
    } catch (error) {
      if (error instanceof StoreUnavailable && error.busy) {
        this.#windowMs = Math.max(1, Math.floor(this.#windowMs / 2));
      }
      throw error;
    }
  }

  /** The receiver has these lines, or refused them for good. */
  #pass(page: readonly DrainedLine[], refused: number): void {
    this.refused += refused;
    this.position = behind(page.at(-1) as DrainedLine);
    this.isDirty = true;
    this.outcome =
      refused === page.length
        ? new DeliveryError("ReceiverRefused", "the receiver refuses the lines for good")
        : "delivered";
  }

  /** It is tried again later; nothing of its own is known to be wrong. */
  backOff(now: number): void {
    this.#retryAt = now + this.#backoff.next();
  }

  /** Records a failure, and when it is tried again. */
  fail(error: DeliveryError, now: number): void {
    const [, longest] = this.#bounds.backoffMs;
    // Not longer than the longest of our own: a receiver that names a year would be away for good.
    const wished = Math.min(error.retryAfterMs ?? 0, longest);
    this.#retryAt = now + Math.max(wished, this.#backoff.next());
    if (isConfiguration(error.reason)) {
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
  async #skip(source: LineSource, horizon: number, isCurrent: () => boolean): Promise<number> {
    const oldest = horizon - this.#bounds.maxLagMs;
    if (this.storedAt >= oldest) {
      return 0;
    }
    const skipped = await source.count(this.position, oldest);
    if (!isCurrent()) {
      return 0;
    }
    this.position = [String(oldest)];
    this.skipped += skipped;
    this.isDirty ||= skipped > 0;
    return skipped;
  }
}

const isConfiguration = (reason: DeliveryError["reason"]): boolean =>
  reason === "SecretNotFound" || reason === "SecretInvalid" || reason === "ReceiverInvalid";
