/** From what a container of a build pod printed to lines of the build's log. Pure. */

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
import { isKubeletMessage } from "../metrics/kubelet-messages.ts";

/** Where the lines of each step begin to be counted. A step has room for as many lines. */
const BASE = { queue: 0, fetch: 1, plan: 2, build: 3, push: 4, publish: 5 } as const;
const ROOM = 1_000_000;
/** Lines of each further try come after all of the try before. */
const TRY_ROOM = 10 * ROOM;

export type LogStep = keyof typeof BASE;

/** The sequence of a line, the same however often it is read. @param line from 1 @param attempt from 1 */
export function sequenceOf(attempt: number, step: LogStep, line: number): number {
  return (Math.max(1, attempt) - 1) * TRY_ROOM + BASE[step] * ROOM + line;
}

/** The last line of a build, after whatever else there is, whichever step it tells of. */
export function finalLine(
  attempt: number,
  { at, level, message, step }: Pick<BuildLogChunk, "at" | "level" | "message" | "step">,
): BuildLogChunk {
  return {
    sequence: sequenceOf(attempt, "publish", ROOM - 1),
    at,
    level,
    step,
    message,
    final: true,
  };
}

/**
 * Puts the output of one container together to lines. What is none of the runner's own, such as the last words of a process that
 * crashed, went past its redaction, and may hold whatever the container has: it is counted, and told of behind all else.
 */
export class LogLines {
  readonly #steps: readonly Step[];
  readonly #attempt: number;
  readonly #decoder = new StringDecoder("utf8");
  #pending = "";
  /** Which of the container's steps writes; none of those before it does any more. */
  #step: Step;
  /** Number of that step's last line. */
  #last = 0;
  #isEmpty = true;
  #bytes = 0;
  #foreign = 0;
  #lastAt: Date | undefined;
  /** Whether the runner has said that it cut the log. */
  truncated = false;
  /** Whether there was nothing but the kubelet's word that it has no log. */
  isMissing = false;
  /** Whether the last step has said that it writes no more. */
  isThrough = false;

  constructor(container: Container, attempt: number) {
    this.#steps = containerSteps[container];
    this.#step = this.#steps[0] ?? "build";
    this.#attempt = attempt;
  }

  /** @returns the lines that became whole */
  push(chunk: Buffer): BuildLogChunk[] {
    const lines = (this.#pending + this.#decoder.write(chunk)).split("\n");
    this.#pending = lines.pop() ?? "";
    return lines.flatMap((line) => this.#take(line));
  }

  /** The output has ended: it holds all that there will be. @param now for lines that tell no time */
  end(now: Date): BuildLogChunk[] {
    const rest = this.#pending + this.#decoder.end();
    this.#pending = "";
    const isKubelets = isKubeletMessage(rest);
    this.isMissing = isKubelets && this.#isEmpty;
    const own = isKubelets ? [] : this.#take(rest);
    const at = this.#lastAt ?? now;
    const count = this.#foreign === 1 ? "1 line" : `${this.#foreign} lines`;
    const foreign = `${count} of this step's output did not come through its log and ${this.#foreign === 1 ? "is" : "are"} left out.`;
    return this.#foreign === 0 ? own : [...own, this.#chunk(this.#last + 1, at, "error", foreign)];
  }

  #take(text: string): BuildLogChunk[] {
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
      this.isThrough ||= line.step === this.#steps.at(-1);
      return [];
    }
    const bytes = Buffer.byteLength(line.message);
    this.#bytes += bytes;
    // The runner's own lines keep to these; a client's step may write beside it.
    if (line.seq >= ROOM - 1 || bytes > MAX_MESSAGE_BYTES || this.#bytes > MAX_LOG_BYTES) {
      this.truncated = true;
      return [];
    }
    this.truncated ||= line.truncated === true;
    this.#last = Math.max(this.#last, line.seq);
    this.#lastAt = new Date(line.at);
    return [this.#chunk(line.seq, this.#lastAt, line.level, clean(line.message))];
  }

  #chunk(line: number, at: Date, level: string, message: string): BuildLogChunk {
    const sequence = sequenceOf(this.#attempt, this.#step, line);
    return { sequence, at, level, step: this.#step, message, final: false };
  }
}

/** PostgreSQL's text takes no NUL. */
const clean = (text: string): string => text.replaceAll("\0", "");
