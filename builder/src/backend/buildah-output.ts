/** Parses the output of `buildah bud` (1.28 and 1.39), both of its streams as one: steps, their output, and the failure. */

import type { OutputLines } from "../log/writer.ts";
import { commandOf } from "../plan/dockerfile.ts";
import type { BuildListener, BuildOutcome } from "./backend.ts";

/** How much of each step's output is kept, in bytes. */
const TAIL_BYTES = 64 * 1024;
/** An unfinished line that is longer is output of a step. */
const MAX_LINE_BYTES = 256 * 1024;
/** Exit code of a process that the kernel has killed. */
const KILLED = 137;

/** `[1/2] STEP 3/5: RUN …`, after the rest of a step's output that ends without a line break. */
const STEP = /^(.*?)(?:\[(\d+)\/\d+\] )?STEP (\d+)\/(\d+): (.*)$/s;
/** Messages about pulling and committing images, and the line after each step. */
const NOISE =
  /^(-->( [0-9a-f]{8,64})?|Trying to pull .+|Getting image source signatures|Copying (blob|config) .+|Writing manifest to image destination|Storing signatures|(\[\d+\/\d+\] )?COMMIT.*|[0-9a-f]{64}|\[Warning\] one or more build args were not consumed: .*)$/;
const CACHED = /^--> Using cache [0-9a-f]+$/;
const ENDED = /^subprocess exited (?:with status \d+|on (\w+))$/;
/** The error of a failed copy quotes buildah's whole internal request. */
const REQUEST = /error during bulk transfer for copier\.request\{.*\}: /g;
/** Instructions that readers of the log see as steps; the others take no time. */
const REPORTED = /^(FROM|RUN|COPY|ADD|WORKDIR) /;

interface Step {
  stage: string;
  /** `build 3/5`. */
  place: string;
  instruction: string;
  /** As buildah quotes it. */
  text: string;
  /** As its author wrote it. */
  shown: string;
  isReported: boolean;
  isKilled: boolean;
  output: OutputLines | undefined;
  tail: Buffer;
}

/** Reads the output line by line, and records the steps. */
export class BuildahOutput {
  readonly #listener: BuildListener;
  readonly #stages = new Map<number, { name: string; last: number }>();
  readonly #steps: Step[] = [];
  /** Possible error lines: the last ones of a failed build, and output of a step otherwise. */
  #errors: string[] = [];
  #pending: Buffer = Buffer.alloc(0);
  #isInLine = false;

  constructor(listener: BuildListener) {
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      this.#line(rest.subarray(0, end + 1));
      rest = rest.subarray(end + 1);
    }
    if (rest.length > MAX_LINE_BYTES) {
      this.#write(rest);
      this.#isInLine = true;
      rest = rest.subarray(rest.length);
    }
    this.#pending = Buffer.from(rest);
  }

  /** Reports a step without output: call when the output pauses. */
  flush(): void {
    this.#report(this.#steps.at(-1), false);
  }

  /** Call when buildah has exited. */
  end(isOk: boolean): void {
    if (this.#pending.length > 0) {
      this.#line(this.#pending);
    }
    if (isOk) {
      this.#releaseErrors();
    }
    this.flush();
    for (const step of this.#steps) {
      step.output?.end();
    }
  }

  /** Whether the output ends with an error. */
  get hasError(): boolean {
    return this.#errors.length > 0;
  }

  /** The failure; its text is the step's output where a command failed. */
  failure(timedOut: boolean): Extract<BuildOutcome, { ok: false }> {
    const words = this.#errors.join("\n").replaceAll(REQUEST, "");
    const step = this.#failed(words);
    if (step === undefined) {
      const { tail = Buffer.alloc(0) } = this.#steps.at(-1) ?? {};
      return { ok: false, timedOut, text: words === "" ? tail.toString("utf8") : words };
    }
    const text = step.tail.toString("utf8");
    const exitCode = step.instruction === "RUN" ? exitCodeOf(words, step.isKilled) : undefined;
    return {
      ok: false,
      timedOut,
      stage: step.stage,
      step: step.shown,
      ...(exitCode === undefined ? {} : { exitCode }),
      text: exitCode === undefined ? `${text}\n${words}` : text,
    };
  }

  /** The step that the error quotes: not always the newest, as a stage may wait for another one. */
  #failed(words: string): Step | undefined {
    const [, quoted] = words.split('building at STEP "', 2);
    if (quoted === undefined) {
      return undefined;
    }
    const instruction = /^\S*/.exec(quoted)?.[0];
    return (
      this.#steps.findLast(({ text }) => quoted.startsWith(`${text}": `)) ??
      // A command in JSON is quoted without its JSON syntax.
      this.#steps.findLast((step) => step.instruction === instruction) ??
      this.#steps.at(-1)
    );
  }

  #line(bytes: Buffer): void {
    if (this.#isInLine) {
      this.#write(bytes);
      this.#isInLine = bytes.at(-1) !== 10;
      return;
    }
    const line = bytes.toString("utf8").replace(/\r?\n$/, "");
    const step = this.#step(line);
    const current = this.#steps.at(-1);
    if (step !== undefined) {
      this.#releaseErrors();
      if (step.before !== "") {
        this.#write(Buffer.from(`${step.before}\n`));
      }
      this.#report(current, false);
      this.#steps.push(step.step);
      return;
    }
    if (CACHED.test(line)) {
      this.#report(current, true);
      return;
    }
    const [ended, signal] = ENDED.exec(line) ?? [];
    if (ended !== undefined && current !== undefined) {
      current.isKilled ||= signal === "killed";
      return;
    }
    if (NOISE.test(line)) {
      return;
    }
    if (line.startsWith("Error: ")) {
      this.#releaseErrors();
      this.#errors.push(line);
      return;
    }
    this.#releaseErrors();
    this.#write(bytes);
  }

  #step(line: string): { before: string; step: Step } | undefined {
    const [, before = "", stageNumber = "1", number, of, text] = STEP.exec(line) ?? [];
    if (text === undefined) {
      return undefined;
    }
    const index = Number(stageNumber);
    const stage = this.#stages.get(index) ?? { name: stageName(text), last: 0 };
    // Only the next step in order: other such lines are printed by programs.
    if (Number(number) !== stage.last + 1) {
      return undefined;
    }
    stage.last += 1;
    this.#stages.set(index, stage);
    const step: Step = {
      stage: stage.name,
      place: `${stage.name} ${number}/${of}`,
      instruction: text.split(" ", 1)[0] ?? "",
      text,
      shown: commandOf(text) ?? text.replaceAll(/--mount=\S+ /g, ""),
      isReported: !REPORTED.test(text) || /^FROM [0-9a-f]{64}\b/.test(text),
      isKilled: false,
      output: undefined,
      tail: Buffer.alloc(0),
    };
    return { before, step };
  }

  #report(step: Step | undefined, isCached: boolean): void {
    if (step !== undefined && !step.isReported) {
      step.isReported = true;
      this.#listener.step(`[${step.place}] ${step.shown}`, isCached);
    }
  }

  #releaseErrors(): void {
    const errors = this.#errors;
    this.#errors = [];
    for (const line of errors) {
      this.#write(Buffer.from(`${line}\n`));
    }
  }

  #write(bytes: Buffer): void {
    const step = this.#steps.at(-1);
    if (step === undefined) {
      this.#errors.push(bytes.toString("utf8").trimEnd());
      return;
    }
    this.#report(step, false);
    step.output ??= this.#listener.output();
    step.output.push(bytes);
    step.tail = Buffer.concat([step.tail, bytes]).subarray(-TAIL_BYTES);
  }
}

/** Name of the stage of a FROM line; one without a name is the image itself. Pure. */
const stageName = (text: string): string => /^FROM .* AS (\S+)$/i.exec(text)?.[1]?.toLowerCase() ?? "image";

function exitCodeOf(words: string, isKilled: boolean): number | undefined {
  const code = /exit status (\d+)$/.exec(words)?.[1];
  return isKilled ? KILLED : code === undefined ? undefined : Number(code);
}
