/** What `buildah bud` prints (1.28 and 1.39), both of its streams as one: what began, what it wrote, what failed. */

import type { OutputLines } from "../log/writer.ts";
import { commandOf } from "../plan/dockerfile.ts";
import type { BuildListener, BuildOutcome } from "./backend.ts";

/** Kept of each step's output, in bytes. */
const TAIL_BYTES = 64 * 1024;
/** A line without an end that is longer is output of a step. */
const MAX_LINE_BYTES = 256 * 1024;
/** What a process that the kernel has killed is known by, in place of a code. */
const KILLED = 137;

/** `[1/2] STEP 3/5: RUN …`; a step that ends its output without a line break stands before it. */
const STEP = /^(.*?)(?:\[(\d+)\/\d+\] )?STEP (\d+)\/(\d+): (.*)$/s;
/** What is told of images while they are taken up or put away, and what follows each step. */
const NOISE =
  /^(-->( [0-9a-f]{8,64})?|Trying to pull .+|Getting image source signatures|Copying (blob|config) .+|Writing manifest to image destination|Storing signatures|(\[\d+\/\d+\] )?COMMIT.*|[0-9a-f]{64}|\[Warning\] one or more build args were not consumed: .*)$/;
const CACHED = /^--> Using cache [0-9a-f]+$/;
const ENDED = /^subprocess exited (?:with status \d+|on (\w+))$/;
/** A copy that fails is quoted with all that buildah has asked itself for. */
const REQUEST = /error during bulk transfer for copier\.request\{.*\}: /g;
/** Instructions that are steps to whoever reads the log; the others are done at once. */
const TOLD = /^(FROM|RUN|COPY|ADD|WORKDIR) /;

interface Step {
  stage: string;
  /** `build 3/5`. */
  place: string;
  instruction: string;
  /** As buildah quotes it. */
  text: string;
  /** As people wrote it. */
  shown: string;
  isTold: boolean;
  isKilled: boolean;
  output: OutputLines | undefined;
  tail: Buffer;
}

/** Reads the output line by line, and remembers the steps. */
export class BuildahOutput {
  readonly #listener: BuildListener;
  readonly #stages = new Map<number, { name: string; last: number }>();
  readonly #steps: Step[] = [];
  /** Lines that end the output when the build has failed, and are a step's own otherwise. */
  #errors: string[] = [];
  #pending: Buffer = Buffer.alloc(0);
  #isInLine = false;

  constructor(listener: BuildListener) {
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      this.#take(rest.subarray(0, end + 1));
      rest = rest.subarray(end + 1);
    }
    if (rest.length > MAX_LINE_BYTES) {
      this.#write(rest);
      this.#isInLine = true;
      rest = rest.subarray(rest.length);
    }
    this.#pending = Buffer.from(rest);
  }

  /** Tells of a step that nothing was heard of: call when the output pauses. */
  flush(): void {
    this.#tell(this.#steps.at(-1), false);
  }

  /** Call when buildah has ended. */
  end(isOk: boolean): void {
    if (this.#pending.length > 0) {
      this.#take(this.#pending);
    }
    if (isOk) {
      this.#releaseErrors();
    }
    this.flush();
    for (const step of this.#steps) {
      step.output?.end();
    }
  }

  /** Whether it ended with a word about why it failed. */
  get isExplained(): boolean {
    return this.#errors.length > 0;
  }

  /** What failed; the text is the step's own where a command has. */
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

  /** The step that is quoted: not always the newest, for a stage may wait for another one. */
  #failed(words: string): Step | undefined {
    const [, quoted] = words.split('building at STEP "', 2);
    if (quoted === undefined) {
      return undefined;
    }
    const instruction = /^\S*/.exec(quoted)?.[0];
    return (
      this.#steps.findLast(({ text }) => quoted.startsWith(`${text}": `)) ??
      // A command in JSON is quoted as its words.
      this.#steps.findLast((step) => step.instruction === instruction) ??
      this.#steps.at(-1)
    );
  }

  #take(bytes: Buffer): void {
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
      this.#tell(current, false);
      this.#steps.push(step.step);
      return;
    }
    if (CACHED.test(line)) {
      this.#tell(current, true);
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
    // Only the step that is next: what programs print of others is theirs.
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
      isTold: !TOLD.test(text) || /^FROM [0-9a-f]{64}\b/.test(text),
      isKilled: false,
      output: undefined,
      tail: Buffer.alloc(0),
    };
    return { before, step };
  }

  #tell(step: Step | undefined, isCached: boolean): void {
    if (step !== undefined && !step.isTold) {
      step.isTold = true;
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
    this.#tell(step, false);
    step.output ??= this.#listener.output();
    step.output.push(bytes);
    step.tail = Buffer.concat([step.tail, bytes]).subarray(-TAIL_BYTES);
  }
}

/** Name of the stage that a FROM line begins; one without a name is the image itself. Pure. */
const stageName = (text: string): string => /^FROM .* AS (\S+)$/i.exec(text)?.[1]?.toLowerCase() ?? "image";

function exitCodeOf(words: string, isKilled: boolean): number | undefined {
  const code = /exit status (\d+)$/.exec(words)?.[1];
  return isKilled ? KILLED : code === undefined ? undefined : Number(code);
}
