import { StringDecoder } from "node:string_decoder";
import type { Step } from "../task.ts";
import { type LogLine, MAX_LOG_BYTES, MAX_MESSAGE_BYTES } from "./line.ts";
import { MASK, type Redactor, stripControlCharacters } from "./redact.ts";

/** A line without an end is written in parts once this much of it has arrived, in UTF-16 units. */
const MAX_PENDING = 256 * 1024;
/** Kept for the lines that say how a step ended, whatever it has written before. */
const RESERVE_BYTES = 64 * 1024;

export interface LogOptions {
  step: Step;
  redactor: Redactor;
  /** Takes one line of JSON, with its end. */
  write(line: string): void;
  now(): Date;
  /** Bytes that earlier steps have written. */
  used?: number;
}

/** A step's log: JSON lines, redacted, numbered, and bounded over the whole build. */
export class Log {
  readonly #options: LogOptions;
  #seq = 0;
  #used: number;
  #isCut = false;

  constructor(options: LogOptions) {
    this.#options = options;
    this.#used = options.used ?? 0;
  }

  /** Bytes of messages that the build has written so far. */
  get used(): number {
    return this.#used;
  }

  info(message: string): void {
    this.#message("info", message, RESERVE_BYTES / 2);
  }

  /** How the step ended, and other lines that matter most: they use the reserve. */
  error(message: string): void {
    this.#message("error", message, 0);
  }

  /** Says that no line follows: a reader of the logs of several steps knows that the next one's may be shown. */
  end(): void {
    this.#put({ level: "info", message: "", last: true });
  }

  /** Takes a program's output, in whatever pieces it comes. Call `end` after the last. */
  output(): OutputLines {
    return new OutputLines(this.#options.redactor, (line) => this.#line("info", line, RESERVE_BYTES));
  }

  #message(level: LogLine["level"], message: string, reserve: number): void {
    const { redactor } = this.#options;
    for (const line of redactor.redact(stripControlCharacters(message)).split("\n")) {
      this.#line(level, line, reserve);
    }
  }

  #line(level: LogLine["level"], redacted: string, reserve: number): void {
    for (const message of pieces(redacted)) {
      const bytes = Buffer.byteLength(message);
      // Lines after a cut would appear to follow it directly.
      if (this.#used + bytes > MAX_LOG_BYTES - reserve || (this.#isCut && level === "info")) {
        this.#cut();
        return;
      }
      this.#put({ level, message });
      this.#used += bytes;
    }
  }

  #cut(): void {
    if (!this.#isCut) {
      this.#isCut = true;
      this.#put({
        level: "error",
        message: `The log is longer than ${MAX_LOG_BYTES >> 20} MiB: what follows is left out.`,
        truncated: true,
      });
    }
  }

  #put(line: Pick<LogLine, "level" | "message" | "truncated" | "last">): void {
    const { step, write, now } = this.#options;
    this.#seq += 1;
    const { level, message, ...marks } = line;
    const whole: LogLine = { seq: this.#seq, at: now().toISOString(), level, step, message, ...marks };
    write(`${JSON.stringify(whole)}\n`);
  }
}

/** Puts a program's output together to lines, and redacts each before anybody sees a part of it. */
export class OutputLines {
  readonly #decoder = new StringDecoder("utf8");
  readonly #redactor: Redactor;
  readonly #emit: (line: string) => void;
  #pending = "";
  /** Until the next line: all of this one is taken for a secret. */
  #isDiscarding = false;

  constructor(redactor: Redactor, emit: (line: string) => void) {
    this.#redactor = redactor;
    this.#emit = emit;
  }

  push(chunk: Buffer): void {
    this.#pending += this.#decoder.write(chunk);
    const lines = this.#pending.split(/\r\n|\n/);
    this.#pending = lines.pop() ?? "";
    for (const line of lines) {
      this.#emitLine(line);
    }
    this.#flushLongLine();
  }

  end(): void {
    const rest = this.#pending + this.#decoder.end();
    this.#pending = "";
    if (rest !== "") {
      this.#emitLine(rest);
    }
  }

  /** Of a line without an end, all but what a secret may have begun in. */
  #flushLongLine(): void {
    if (this.#isDiscarding) {
      this.#pending = "";
      return;
    }
    const most = Math.max(MAX_PENDING, this.#redactor.longest * 4);
    if (this.#pending.length <= most) {
      return;
    }
    const text = stripControlCharacters(this.#pending);
    const cut = this.#redactor.cutBefore(text, Math.max(0, text.length - this.#redactor.longest));
    if (cut === 0) {
      // Secrets that overlap from the beginning on, as of a secret that repeats itself.
      this.#pending = "";
      this.#discard();
      return;
    }
    this.#emit(this.#redactor.redact(text.slice(0, cut)));
    this.#pending = text.slice(cut);
  }

  #discard(): void {
    if (!this.#isDiscarding) {
      this.#isDiscarding = true;
      this.#emit(MASK);
    }
  }

  #emitLine(line: string): void {
    if (this.#isDiscarding) {
      this.#isDiscarding = false;
      return;
    }
    // A progress bar writes over itself: what stood there last is what was meant to stay.
    const parts = line.split("\r").filter((part) => part !== "");
    for (const part of parts.length > 3 ? parts.slice(-1) : parts) {
      this.#emit(this.#redactor.redact(stripControlCharacters(part)));
    }
    if (parts.length === 0) {
      this.#emit("");
    }
  }
}

/** Parts of at most `MAX_MESSAGE_BYTES`, cut between characters. */
function pieces(message: string): string[] {
  if (Buffer.byteLength(message) <= MAX_MESSAGE_BYTES) {
    return [message];
  }
  const found: string[] = [];
  let part = "";
  let bytes = 0;
  for (const character of message) {
    const size = Buffer.byteLength(character);
    if (bytes + size > MAX_MESSAGE_BYTES) {
      found.push(part);
      part = "";
      bytes = 0;
    }
    part += character;
    bytes += size;
  }
  return [...found, part];
}
