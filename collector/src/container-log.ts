import type { Clock } from "@slipway/process";
import { type CriLine, LineAssembler, parseCriLine } from "./cri.ts";
import { type KnownFile, knownFiles, logFiles, namesOf } from "./log-files.ts";
import { type OpenFile, openLog } from "./open-log.ts";

/** A place in a container's log: all before it has been read. */
export interface Position {
  /** The file, by its identity. */
  file: string;
  /** Bytes from its beginning, as they are without compression. */
  offset: number;
}

/** A line that the container wrote; `oversize` or `damaged` in place of what cannot be read. */
export interface LogLine {
  content: Buffer | "oversize" | "damaged";
  /** What the runtime has of it, where pieces are read. */
  piece?: Omit<CriLine, "content">;
  /** Where to continue once this line has been processed. */
  next: Position;
}

export interface ContainerLogOptions {
  /**
   * Bytes of a whole line of the standard output; longer ones are dropped. `pieces`: lines of both outputs, long ones in the pieces
   * that the runtime cuts them into, so that no line is waited for and none is dropped.
   */
  lines: { maxBytes: number } | "pieces";
  clock: Clock;
  /**
   * Called with how many files should have been read to their end and are removed or damaged: their content is unknown.
   * `next` is where the log continues behind them; undefined when all of it is removed.
   */
  onGap: (files: number, next: Position | undefined) => void;
}

/** How long a file is read on after the next one appeared: the runtime opens the new one before its last write to the old one. */
const OVERLAP_MS = 1_000;
/** In the place of a file's identity: no file has it. */
const UNSEEN = "";

/**
 * The log of one container as one stream, through all of the files in which the kubelet keeps it: renamed, compressed,
 * begun again with every restart, removed while it is read.
 */
export class ContainerLog {
  readonly folder: string;
  readonly #options: ContainerLogOptions;
  /** Undefined where pieces are read. */
  readonly #assembler: LineAssembler | undefined;
  #open: OpenFile | undefined;
  /** Up to where it was read; undefined before anything was. */
  #at: Position | undefined;
  /** Since when there has been a newer file than the open one. */
  #newerSince: number | undefined;
  /** Whether the rest of the open one cannot be read. */
  #isDamaged = false;
  /** The names of all files when the open one was the newest of them. */
  #newestAmong: string | undefined;
  /** Files that were seen to follow the open one, by their identities: those that are removed when their turn comes are lost. */
  #following: string[] = [];
  /** The names of all files when they were last observed. */
  #observedNames: string | undefined;

  /** @param start where to continue; the beginning of the oldest file without one */
  constructor(folder: string, start: Position | undefined, options: ContainerLogOptions) {
    this.folder = folder;
    this.#at = start;
    this.#options = options;
    const { lines } = options;
    this.#assembler = lines === "pieces" ? undefined : new LineAssembler(lines.maxBytes);
  }

  /** The next lines, in order; none when there are none yet. `removed` when the log has been removed and read to its end. */
  async read(): Promise<LogLine[] | "removed"> {
    const file = this.#open ?? (await this.#begin());
    if (!file) {
      return (await logFiles(this.folder)).length === 0 ? "removed" : [];
    }
    this.#open = file;
    try {
      const lines = await this.#readFrom(file);
      this.#isDamaged ||= file.isDamaged;
      if (!file.isAtEnd || lines.length > 0) {
        return lines;
      }
    } catch (error) {
      // Opened again the next time, at the same position.
      await this.close();
      throw error;
    }
    // Read after the end was reached: what is written to the old file from here on is waited for.
    const after = await this.#next(file);
    if (after === undefined) {
      return [];
    }
    const { next } = after;
    const lost = after.lost + (this.#isDamaged ? 1 : 0);
    this.#newerSince = undefined;
    this.#newestAmong = undefined;
    this.#isDamaged = false;
    await this.close();
    const at = next && { file: next.identity, offset: 0 };
    if (lost > 0) {
      this.#options.onGap(lost, at);
    }
    if (!next) {
      return "removed";
    }
    this.#at = at;
    this.#open = await openLog(next, 0);
    return [];
  }

  /**
   * Records which files exist, also while nothing is read: those that follow the open one may be removed before it has been
   * read. The open one itself stays readable.
   */
  async observeFiles(): Promise<void> {
    this.#open ??= await this.#begin();
    if (!this.#open || namesOf(await logFiles(this.folder)) === this.#observedNames) {
      return;
    }
    const known = await knownFiles(this.folder);
    if (!known) {
      return;
    }
    this.#observedNames = known.areAll ? known.names : undefined;
    const { identity } = this.#open;
    const at = known.files.findIndex((file) => file.identity === identity);
    // Removed without any that was seen to follow: an unseen one may be removed, too.
    if (at < 0 && this.#following.length === 0 && known.files.length > 0) {
      this.#following.push(UNSEEN);
    }
    for (const { identity } of known.files.slice(at + 1)) {
      if (!this.#following.includes(identity)) {
        this.#following.push(identity);
      }
    }
  }

  /** How many files have something that was not read, as far as they were seen. */
  async countUnread(): Promise<number> {
    return ((await this.#open?.hasMore()) ? 1 : 0) + this.#following.length;
  }

  async close(): Promise<void> {
    await this.#open?.close();
    this.#open = undefined;
  }

  async #begin(): Promise<OpenFile | undefined> {
    const known = await knownFiles(this.folder);
    const found = known?.files.find(({ identity }) => identity === this.#at?.file);
    const first = found ?? known?.files[0];
    if (!first) {
      return undefined;
    }
    const lost = this.#at && !found ? 1 + this.#countRemoved(known?.files ?? []) : 0;
    this.#following = [];
    this.#observedNames = undefined;
    this.#isDamaged = false;
    if (!found) {
      this.#at = { file: first.identity, offset: 0 };
    }
    if (lost > 0) {
      this.#options.onGap(lost, this.#at);
    }
    return openLog(first, this.#at?.offset ?? 0);
  }

  /**
   * The file to continue with after one that was read to its end, none when the whole log is removed, and how many files before it
   * are lost. Undefined while that one is the newest, or may still be written to.
   */
  async #next(open: OpenFile): Promise<{ next: KnownFile | undefined; lost: number } | undefined> {
    const names = namesOf(await logFiles(this.folder));
    if (names !== "" && names === this.#newestAmong) {
      return undefined;
    }
    const known = await knownFiles(this.folder);
    if (!known) {
      return undefined;
    }
    const { files } = known;
    // A removed file was the oldest: all that are left are newer. A new file comes with a new name for the one before.
    const at = files.findIndex(({ identity }) => identity === open.identity);
    const next = files[at + 1];
    const isRemoved = known.names === "";
    this.#newestAmong = at >= 0 && !next && known.areAll ? known.names : undefined;
    if (!next && !isRemoved) {
      this.#newerSince = undefined;
      return undefined;
    }
    const now = this.#options.clock.monotonic();
    this.#newerSince ??= now;
    // The runtime has long closed those before the last but one.
    const isOld = at < files.length - 2;
    if (!isOld && now - this.#newerSince < OVERLAP_MS) {
      return undefined;
    }
    // After a file that is removed itself, another one may have been removed, too, unless they were observed.
    const wereSeen = this.#following.length > 0;
    const lost = at < 0 && next && !wereSeen ? 1 : this.#countRemoved(files);
    this.#following = this.#following.slice(this.#following.indexOf(next?.identity ?? "") + 1);
    return { next, lost };
  }

  /** How many of the files that were seen to follow are removed. */
  #countRemoved(files: readonly KnownFile[]): number {
    const there = new Set(files.map(({ identity }) => identity));
    return this.#following.filter((identity) => !there.has(identity)).length;
  }

  async #readFrom(file: OpenFile): Promise<LogLine[]> {
    const lines: LogLine[] = [];
    const read = await file.readLines();
    for (const { text, end } of read) {
      const line = text && parseCriLine(text);
      const next = { file: file.identity, offset: end };
      if (!line) {
        lines.push({ content: "damaged", next });
      } else if (!this.#assembler) {
        const { content, ...piece } = line;
        lines.push({ content, piece, next });
      } else if (line.stream === "stdout") {
        const content = this.#assembler.add(line);
        if (content !== undefined) {
          lines.push({ content, next });
        }
      }
      this.#at = next;
    }
    // Pieces of a line are no lines, but they are something: the end has not been seen.
    if (read.length > 0) {
      file.isAtEnd = false;
    }
    return lines;
  }
}
