import { join } from "node:path";
import type { AccessEvent } from "@slipway/analytics";
import type { Disk } from "./disk.ts";
import { UnsentBytes } from "./shares.ts";
import {
  ASIDE,
  BATCH,
  type Batch,
  CURSOR,
  cursor,
  idOf,
  MOST_ASIDE,
  nameOf,
  type Positions,
  pack,
  type Stored,
  stored,
  unpack,
  type Waiting,
} from "./spool-files.ts";

/**
 * Batches on their way to the store, on the disk. A batch is written together with the positions up to which the logs were
 * read for it, in one file that appears as a whole: whenever the process dies, both exist or neither, so that
 * no line is lost and none is in two batches. Once written, a batch never changes: sent again it is the same batch, with the
 * same id, which the store knows.
 *
 * The newest file has the positions to continue from. Before the last batch is removed, its positions are kept in `cursor.json`.
 */
export class Spool<Event extends object = AccessEvent> {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #now: () => number;
  readonly #waiting: Waiting[] = [];
  readonly #unsent = new UnsentBytes();
  #sequence = 0;
  #positions: Positions = {};
  /** One step after the other: files follow each other as their sequence says. */
  #last: Promise<unknown> = Promise.resolve();
  #wake: () => void = () => {};

  private constructor(disk: Disk, folder: string, now: () => number) {
    this.#disk = disk;
    this.#folder = folder;
    this.#now = now;
  }

  /**
   * Finds what an earlier process left.
   * @param onDamaged called with files that cannot be read, which are set aside
   */
  static async open<Event extends object = AccessEvent>(
    disk: Disk,
    folder: string,
    now: () => number,
    onDamaged: (name: string) => void = () => {},
  ): Promise<Spool<Event>> {
    const spool = new Spool<Event>(disk, folder, now);
    await spool.#recover(onDamaged);
    return spool;
  }

  /** Up to where the logs are in batches; a log that is not named has not been read. */
  get positions(): Positions {
    return this.#positions;
  }

  get bytes(): number {
    return this.#waiting.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get count(): number {
    return this.#waiting.length;
  }

  /** Bytes of batches, as far as this process made them, by whose events they have. */
  unsentBytesOf(organization: string): number {
    return this.#unsent.of(organization);
  }

  /** The batch that has waited longest. */
  get oldest(): Waiting | undefined {
    return this.#waiting[0];
  }

  /**
   * Makes a batch, once it is on the disk for good.
   * @param positions up to where the logs have been read for it; undefined for events that come from elsewhere
   * @param id of a batch that has one; made of what precedes and follows it in the logs otherwise
   * @param weights how much of it each organization's events are
   */
  add(
    events: Event[],
    positions: Positions | undefined,
    id?: string,
    weights: ReadonlyMap<string, number> = new Map(),
  ): Promise<void> {
    return this.#inTurn(async () => {
      const sequence = this.#sequence + 1;
      const next = positions ?? this.#positions;
      const madeAt = this.#now();
      const batch: Stored = {
        id: id ?? idOf(sequence, madeAt, this.#positions, next),
        madeAt,
        positions: next,
        events,
      };
      const content = await pack(JSON.stringify(batch), { level: 1 });
      await this.#put(nameOf(sequence), content);
      this.#sequence = sequence;
      this.#positions = next;
      this.#waiting.push({ sequence, bytes: content.length, madeAt });
      this.#unsent.add(sequence, content.length, weights);
      this.#wake();
    });
  }

  /** Keeps positions after lines that held no event. What was read before them must be in batches. */
  savePositions(positions: Positions): Promise<void> {
    return this.#inTurn(() => this.#saveCursor(positions));
  }

  /** @throws Error when the file cannot be read */
  async read({ sequence }: Waiting): Promise<Batch<Event>> {
    const { id, events } = await this.#load(nameOf(sequence));
    // As they were written: a folder has batches of one kind.
    return { id, events: events as Event[] };
  }

  /** Removes a batch that the store has. */
  done(batch: Waiting): Promise<void> {
    return this.#leave(batch, (path) => this.#disk.remove(path));
  }

  /** Takes a batch out of the way that cannot be sent; its file stays for a while, under another name. */
  setAside(batch: Waiting): Promise<void> {
    return this.#leave(batch, async (path) => {
      await this.#disk.rename(path, `${path}.refused`);
      await this.#forgetAside();
    });
  }

  /** Resolves when there is a batch, or when the signal aborts. */
  async untilWaiting(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length > 0 || signal.aborted) {
      return;
    }
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  #leave(batch: Waiting, leave: (path: string) => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      // Only the newest file has the positions to continue from.
      if (batch.sequence === this.#sequence) {
        await this.#saveCursor(this.#positions);
      }
      await leave(join(this.#folder, nameOf(batch.sequence)));
      this.#waiting.splice(this.#waiting.indexOf(batch), 1);
      this.#unsent.remove(batch.sequence);
    });
  }

  async #saveCursor(positions: Positions): Promise<void> {
    await this.#put(CURSOR, Buffer.from(JSON.stringify({ sequence: this.#sequence, positions })));
    this.#positions = positions;
  }

  async #put(name: string, content: Buffer): Promise<void> {
    const path = join(this.#folder, name);
    await this.#disk.write(`${path}.new`, content);
    await this.#disk.rename(`${path}.new`, path);
  }

  async #recover(onDamaged: (name: string) => void): Promise<void> {
    const files = await this.#disk.list(this.#folder);
    for (const { name } of files) {
      // Never had its name: it is as if it had not been written.
      if (name.endsWith(".new")) {
        await this.#disk.remove(join(this.#folder, name));
      }
    }
    const saved = files.some(({ name }) => name === CURSOR) ? await this.#readCursor(onDamaged) : undefined;
    if (saved) {
      [this.#sequence, this.#positions] = [saved.sequence, saved.positions];
    }
    const found = files
      .flatMap(({ name, bytes, writtenAt }) => {
        const sequence = Number(BATCH.exec(name)?.[1] ?? Number.NaN);
        return Number.isNaN(sequence) ? [] : [{ sequence, bytes, madeAt: writtenAt }];
      })
      .sort((a, b) => a.sequence - b.sequence);
    // The newest that can be read has the positions to continue from. The others are read when their turn to be sent comes: an hour's take a while.
    for (let newest = found.at(-1); newest; newest = found.at(-1)) {
      const { sequence } = newest;
      const batch = await this.#load(nameOf(sequence)).catch(() => undefined);
      if (batch) {
        // A cursor of the same sequence was written after the batch.
        if (sequence > this.#sequence) {
          [this.#sequence, this.#positions] = [sequence, batch.positions];
        }
        break;
      }
      found.pop();
      const path = join(this.#folder, nameOf(sequence));
      onDamaged(nameOf(sequence));
      await this.#disk.rename(path, `${path}.damaged`);
    }
    this.#waiting.push(...found);
    await this.#forgetAside();
  }

  async #forgetAside(): Promise<void> {
    const names = (await this.#disk.list(this.#folder)).map(({ name }) => name);
    const aside = names.filter((name) => ASIDE.test(name)).sort();
    for (const name of aside.slice(0, -MOST_ASIDE)) {
      await this.#disk.remove(join(this.#folder, name));
    }
  }

  async #readCursor(onDamaged: (name: string) => void) {
    try {
      const text = await this.#disk.read(join(this.#folder, CURSOR));
      return cursor.parse(JSON.parse(text.toString("utf8")));
    } catch {
      onDamaged(CURSOR);
      return undefined;
    }
  }

  async #load(name: string): Promise<Stored> {
    const packed = await this.#disk.read(join(this.#folder, name));
    return stored.parse(JSON.parse((await unpack(packed)).toString("utf8")));
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(step);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}
