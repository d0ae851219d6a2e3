/** The format of container logs that kubelets agree on with their runtimes: `time stream P|F text`. Pure. */

/** One line as a runtime wrote it; long ones are written in pieces, all but the last of which are partial. */
export interface CriLine {
  /** When it was written, as the runtime has it. */
  time: string;
  stream: "stdout" | "stderr";
  isPartial: boolean;
  /** The bytes that the container wrote, without the end of the line. */
  content: Buffer;
}

/** Reads a line without its end; undefined when it is none of this format. */
export function parseCriLine(line: Buffer): CriLine | undefined {
  const afterTime = line.indexOf(SPACE);
  const afterStream = line.indexOf(SPACE, afterTime + 1);
  if (afterTime <= 0 || afterStream < 0) {
    return undefined;
  }
  const stream = line.toString("latin1", afterTime + 1, afterStream);
  if (stream !== "stdout" && stream !== "stderr") {
    return undefined;
  }
  // Behind the tag there may be others, joined by colons.
  const tag = line[afterStream + 1];
  const next = line[afterStream + 2];
  if ((tag !== PARTIAL && tag !== FULL) || (next !== undefined && next !== SPACE && next !== COLON)) {
    return undefined;
  }
  const afterTags = line.indexOf(SPACE, afterStream + 2);
  const content = afterTags < 0 ? line.subarray(line.length) : line.subarray(afterTags + 1);
  return { time: line.toString("latin1", 0, afterTime), stream, isPartial: tag === PARTIAL, content };
}

const SPACE = 0x20;
const COLON = 0x3a;
const PARTIAL = 0x50;
const FULL = 0x46;

/** Puts the pieces of long lines of one stream together. */
export class LineAssembler {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;
  #isOpen = false;

  /** @param maxBytes of a whole line; what is longer is dropped */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether pieces were taken in whose line is not whole yet. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** @returns a whole line, `oversize` at the end of one that was too long, or undefined while pieces are missing */
  add({ isPartial, content }: Pick<CriLine, "isPartial" | "content">): Buffer | "oversize" | undefined {
    this.#bytes += content.length;
    const fits = this.#bytes <= this.#maxBytes;
    // A copy: what it is a part of is the reader's buffer, and would be kept whole.
    this.#parts = fits ? [...this.#parts, Buffer.from(content)] : [];
    this.#isOpen = isPartial;
    if (isPartial) {
      return undefined;
    }
    const whole = fits ? Buffer.concat(this.#parts) : "oversize";
    this.#parts = [];
    this.#bytes = 0;
    return whole;
  }
}
