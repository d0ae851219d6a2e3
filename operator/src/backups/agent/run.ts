/** Carries out one task of the agent. */

import { createHash } from "node:crypto";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { EngineEnded, EngineSide } from "./pipe.ts";
import { type Contents, type Place, type Result, type Task, WORK } from "./protocol.ts";
import { eraseFile, openFile, partsSink, readFileStream, readUrl, readUrls, type Sink } from "./storage.ts";

/** For a program that has closed the pipe. */
const EXIT_MS = 30_000;

/**
 * What went wrong is the result.
 * @param folder that the engine's container shares
 * @param exitMs how long the engine's program may take to say how it ended
 */
export async function runTask(task: Task, folder: string = WORK, exitMs = EXIT_MS): Promise<Result> {
  const engine = new EngineSide(folder);
  switch (task.do) {
    case "store":
      return store(task, engine, exitMs);
    case "fetch":
      return fetchInto(task, engine);
    case "erase":
      return erase(task.place.path);
  }
}

/** Nothing is kept unless the engine's program says itself that it has dumped all. */
async function store(
  { place, counts }: Extract<Task, { do: "store" }>,
  engine: EngineSide,
  exitMs: number,
): Promise<Result> {
  let sink: Sink | undefined;
  try {
    sink = await openSink(place);
    await engine.awaitPipe();
    const meter = new Meter();
    const { parts, etags } = await sink.take(measured(await engine.read(), meter));
    const code = await engine.awaitExit({ limitMs: exitMs });
    if (code !== 0) {
      throw new EngineEnded(code);
    }
    const contents = readContents(await engine.counts(), counts);
    await sink.commit();
    const upload = { ...(parts ? { parts } : {}), ...(etags ? { etags } : {}) };
    return { ok: true, sizeBytes: meter.bytes, sha256: meter.digest, ...upload, contents };
  } catch (error) {
    await sink?.abort().catch(() => undefined);
    return failed(error, "DumpFailed", "the dump");
  }
}

async function fetchInto(task: Extract<Task, { do: "fetch" }>, engine: EngineSide): Promise<Result> {
  const meter = new Meter();
  try {
    const stream = await openSource(task.place);
    await engine.awaitPipe();
    const pipe = await engine.write();
    const written = await pipeline(stream, meter, pipe).then(
      () => true,
      (error: unknown) => {
        // A program that has what it needs may close the pipe early, or fails: its exit code shows which.
        if (isBroken(error)) {
          return false;
        }
        throw error;
      },
    );
    if (written && meter.digest !== task.sha256) {
      return { ok: false, reason: "DataDamaged", message: "what is stored is not what was stored" };
    }
    const code = await engine.awaitExit();
    if (code !== 0 || !written) {
      throw new EngineEnded(code);
    }
    const contents = readContents(await engine.counts(), task.counts);
    return { ok: true, sizeBytes: meter.bytes, sha256: meter.digest, contents };
  } catch (error) {
    return failed(error, "LoadFailed", "loading the dump");
  }
}

async function erase(path: string): Promise<Result> {
  try {
    await eraseFile(path);
    return { ok: true, sizeBytes: 0, sha256: "" };
  } catch (error) {
    return failed(error, "StoreFailed", "");
  }
}

function openSink(place: Place): Promise<Sink> {
  return place.kind === "file"
    ? openFile(place.path)
    : readUrls(place.file).then(({ parts = [] }) => partsSink(parts, place.partBytes));
}

async function openSource(place: Place): Promise<Readable> {
  if (place.kind === "file") {
    return readFileStream(place.path);
  }
  const { get } = await readUrls(place.file);
  if (get === undefined) {
    throw new Error("there is no URL to read from");
  }
  return readUrl(get);
}

/** Errors of the file system and of stores name paths and codes, and no content. */
function failed(error: unknown, ofEngine: "DumpFailed" | "LoadFailed" | "StoreFailed", what: string): Result {
  if (error instanceof EngineEnded) {
    return { ok: false, reason: ofEngine, message: `${what} ${error.message}` };
  }
  const message = error instanceof Error ? error.message : "unknown";
  return { ok: false, reason: "StoreFailed", message: message.slice(0, 300) };
}

const isBroken = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "EPIPE";

/** What comes out of the pipe, measured. */
function measured(pipe: Readable, meter: Meter): Readable {
  pipe.on("error", (error) => meter.destroy(error));
  return pipe.pipe(meter);
}

/** Counts and hashes what flows through. */
class Meter extends Transform {
  bytes = 0;
  readonly #hash = createHash("sha256");
  #digest: string | undefined;

  get digest(): string {
    this.#digest ??= this.#hash.digest("hex");
    return this.#digest;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: (error: null, chunk: Buffer) => void): void {
    this.bytes += chunk.length;
    this.#hash.update(chunk);
    done(null, chunk);
  }
}

/**
 * Sums up lines of `name<TAB>number`. Names may have anything but a line feed; the number is after the last tab. Pure.
 * @throws Error on any other line
 */
function readContents(text: string, counts: "rows" | "keys"): Contents {
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .toSorted((a, b) => (a < b ? -1 : 1));
  const total = lines.reduce((sum, line) => {
    const number = /\t([0-9]+)$/.exec(line)?.[1];
    if (number === undefined) {
      throw new Error("a line of the contents has no number");
    }
    return sum + Number(number);
  }, 0);
  const hash = createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 32);
  return counts === "keys" ? { keys: total, hash } : { tables: lines.length, rows: total, hash };
}
