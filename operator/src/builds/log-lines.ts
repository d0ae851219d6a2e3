/** Converts the output of a build pod's container to lines of the build's log. Pure. */

import { StringDecoder } from "node:string_decoder";
import {
  type Container,
  containerSteps,
  MAX_LOG_BYTES,
  MAX_MESSAGE_BYTES,
  parseLogLine,
  type Step,
} from "@slipway/builder/contract";
import type { BuildLogChunk } from "@slipway/ledger";
import { isKubeletMessage } from "../logs/kubelet-messages.ts";

/** Offset of each step's sequence numbers, in units of the most lines that a step can have. */
const BASE = { queue: 0, fetch: 1, plan: 2, build: 3, push: 4, publish: 5 } as const;
const LINES_PER_STEP = 1_000_000;
/** Lines of each further attempt follow all lines of the attempt before. */
const LINES_PER_ATTEMPT = 10 * LINES_PER_STEP;

export type LogStep = keyof typeof BASE;

/** The sequence of a line, the same however often it is read. @param line from 1 @param attempt from 1 */
export function sequenceOf(attempt: number, step: LogStep, line: number): number {
  return (Math.max(1, attempt) - 1) * LINES_PER_ATTEMPT + BASE[step] * LINES_PER_STEP + line;
}

/** The last line of a build, after all others, whichever step it belongs to. */
export function finalLine(
  attempt: number,
  { at, level, message, step }: Pick<BuildLogChunk, "at" | "level" | "message" | "step">,
): BuildLogChunk {
  return {
    sequence: sequenceOf(attempt, "publish", LINES_PER_STEP - 1),
    at,
    level,
    step,
    message,
    final: true,
  };
}

/**
 * Splits the output of one container into lines. Lines that are not the runner's, such as the last output of a crashed process,
 * bypassed its redaction and may contain secrets: they are counted, and the count is reported last.
 */
export class LogLines {
  readonly #steps: readonly Step[];
  readonly #attempt: number;
  readonly #decoder = new StringDecoder("utf8");
  #pending = "";
  /** Which of the container's steps writes; earlier ones have ended. */
  #step: Step;
  /** Number of that step's last line. */
  #last = 0;
  #isEmpty = true;
  #bytes = 0;
  #foreign = 0;
  #lastAt: Date | undefined;
  /** Whether the runner has said that it cut the log. */
  truncated = false;
  /** Whether the kubelet answered that it has no log. */
  isMissing = false;
  /** Whether the last step has marked the end of its log. */
  isFinal = false;

  constructor(container: Container, attempt: number) {
    this.#steps = containerSteps[container];
    this.#step = this.#steps[0] ?? "build";
    this.#attempt = attempt;
  }

  /** @returns the completed lines */
  push(chunk: Buffer): BuildLogChunk[] {
    const lines = (this.#pending + this.#decoder.write(chunk)).split("\n");
    this.#pending = lines.pop() ?? "";
    return lines.flatMap((line) => this.#parse(line));
  }

  /** The output has ended. @param now time of lines without one */
  end(now: Date): BuildLogChunk[] {
    const rest = this.#pending + this.#decoder.end();
    this.#pending = "";
    const isFromKubelet = isKubeletMessage(rest);
    this.isMissing = isFromKubelet && this.#isEmpty;
    const own = isFromKubelet ? [] : this.#parse(rest);
    const at = this.#lastAt ?? now;
    const count = this.#foreign === 1 ? "1 line" : `${this.#foreign} lines`;
    const foreign = `${count} of this step's output did not come through its log and ${this.#foreign === 1 ? "is" : "are"} left out.`;
    return this.#foreign === 0 ? own : [...own, this.#chunk(this.#last + 1, at, "error", foreign)];
  }

  #parse(text: string): BuildLogChunk[] {
    const line = parseLogLine(text);
    if (line === undefined || this.#steps.indexOf(line.step) < this.#steps.indexOf(this.#step)) {
      if (text.trim() !== "") {
        this.#foreign += 1;
      }
      return [];
    }
    if (line.step !== this.#step) {
      this.#step = line.step;
      this.#last = 0;
    }
    this.#isEmpty = false;
    if (line.last) {
      this.isFinal ||= line.step === this.#steps.at(-1);
      return [];
    }
    const bytes = Buffer.byteLength(line.message);
    this.#bytes += bytes;
    // The runner keeps to these limits; a client's step can write beside it.
    if (line.seq >= LINES_PER_STEP - 1 || bytes > MAX_MESSAGE_BYTES || this.#bytes > MAX_LOG_BYTES) {
      this.truncated = true;
      return [];
    }
    this.truncated ||= line.truncated === true;
    this.#last = Math.max(this.#last, line.seq);
    this.#lastAt = new Date(line.at);
    return [this.#chunk(line.seq, this.#lastAt, line.level, withoutNul(line.message))];
  }

  #chunk(line: number, at: Date, level: string, message: string): BuildLogChunk {
    const sequence = sequenceOf(this.#attempt, this.#step, line);
    return { sequence, at, level, step: this.#step, message, final: false };
  }
}

/** PostgreSQL's text cannot contain NUL. */
const withoutNul = (text: string): string => text.replaceAll("\0", "");
