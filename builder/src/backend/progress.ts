/** Parses BuildKit's progress (`buildctl --progress=rawjson`, v0.31): steps, their output, and the failure. */

import { z } from "zod";
import type { OutputLines } from "../log/writer.ts";
import type { BuildListener, BuildOutcome } from "./backend.ts";

const status = z.object({
  vertexes: z
    .array(
      z.object({
        digest: z.string(),
        name: z.string().default(""),
        started: z.string().optional(),
        completed: z.string().optional(),
        cached: z.boolean().optional(),
        error: z.string().optional(),
      }),
    )
    .nullish(),
  logs: z.array(z.object({ vertex: z.string(), stream: z.int().default(1), data: z.string() })).nullish(),
});

/** How much of each step's output is kept, in bytes. */
const TAIL_BYTES = 64 * 1024;
/** How much of BuildKit's output outside of steps is kept, in characters. */
const MESSAGES_LENGTH = 16 * 1024;

interface Vertex {
  name: string;
  isReported: boolean;
  /** By stream: their lines are complete only when read apart. */
  outputs: Map<number, OutputLines>;
  tail: Buffer;
}

/** Reads the progress line by line, and keeps the first failure. */
export class BuildkitProgress {
  readonly #listener: BuildListener;
  readonly #commands: Record<string, string>;
  readonly #vertexes = new Map<string, Vertex>();
  #failed: { vertex: Vertex; error: string } | undefined;
  #messages = "";
  #pending = "";

  /** @param commands of steps, by `<stage> <steps after it>` */
  constructor(listener: BuildListener, commands: Record<string, string> = {}) {
    this.#listener = listener;
    this.#commands = commands;
  }

  push(chunk: Buffer): void {
    const lines = (this.#pending + chunk.toString("utf8")).split("\n");
    this.#pending = lines.pop() ?? "";
    for (const line of lines) {
      this.#line(line);
    }
  }

  /** Call when buildctl has exited. */
  end(): void {
    this.#line(this.#pending);
    for (const vertex of this.#vertexes.values()) {
      endOutputs(vertex);
    }
  }

  /** The failure; its text is the step's output where a step failed. */
  failure(timedOut: boolean): Extract<BuildOutcome, { ok: false }> {
    if (this.#failed === undefined) {
      return { ok: false, timedOut, text: this.#messages };
    }
    const { vertex, error } = this.#failed;
    const exitCode = /exit code: (\d+)/.exec(error)?.[1];
    const text = vertex.tail.toString("utf8");
    return {
      ok: false,
      timedOut,
      stage: placeOf(vertex.name)?.stage,
      step: withoutPlace(displayName(vertex.name, this.#commands)),
      ...(exitCode === undefined ? {} : { exitCode: Number(exitCode) }),
      text: exitCode === undefined ? `${text}\n${error}\n${this.#messages}` : text,
    };
  }

  #line(line: string): void {
    if (line.trim() === "") {
      return;
    }
    const parsed = line.startsWith("{") ? parse(line) : undefined;
    if (parsed === undefined) {
      this.#messages = `${this.#messages}${line}\n`.slice(-MESSAGES_LENGTH);
      return;
    }
    for (const each of parsed.vertexes ?? []) {
      const vertex = this.#vertex(each.digest);
      vertex.name = each.name === "" ? vertex.name : each.name;
      if (each.started !== undefined || each.cached) {
        this.#report(vertex, each.cached === true);
      }
      if (each.completed !== undefined) {
        endOutputs(vertex);
      }
      // Steps that depend on it or ran concurrently are cancelled: only the first one has failed.
      if (each.error !== undefined && each.error !== "" && !/context canceled/.test(each.error)) {
        this.#failed ??= { vertex, error: each.error };
      }
    }
    for (const { vertex: digest, stream, data } of parsed.logs ?? []) {
      const vertex = this.#vertex(digest);
      const bytes = Buffer.from(data, "base64");
      const output = vertex.outputs.get(stream) ?? this.#listener.output();
      vertex.outputs.set(stream, output);
      output.push(bytes);
      vertex.tail = Buffer.concat([vertex.tail, bytes]).subarray(-TAIL_BYTES);
    }
  }

  #report(vertex: Vertex, cached: boolean): void {
    if (!vertex.isReported && !vertex.name.startsWith("[internal]")) {
      vertex.isReported = true;
      this.#listener.step(displayName(vertex.name, this.#commands), cached);
    }
  }

  #vertex(digest: string): Vertex {
    const found = this.#vertexes.get(digest) ?? {
      name: "",
      isReported: false,
      outputs: new Map(),
      tail: Buffer.alloc(0),
    };
    this.#vertexes.set(digest, found);
    return found;
  }
}

function endOutputs({ outputs }: Vertex): void {
  for (const output of outputs.values()) {
    output.end();
  }
  outputs.clear();
}

function parse(line: string): z.output<typeof status> | undefined {
  try {
    const result = status.safeParse(JSON.parse(line));
    return result.success ? result.data : undefined;
  } catch {
    return undefined;
  }
}

interface Place {
  stage: string;
  number: number;
  of: number;
}

/** Stage and number of `[dependencies 2/5] RUN …`, undefined outside of stages. Pure. */
export function placeOf(name: string): Place | undefined {
  const [, stage, number, of] = /^\[(?:\S+ )?(\S+) +(\d+)\/(\d+)\] /.exec(name) ?? [];
  return stage === undefined ? undefined : { stage, number: Number(number), of: Number(of) };
}

/** The step as its author wrote it, without what the platform and BuildKit add. Pure. */
export function displayName(name: string, commands: Record<string, string>): string {
  const place = placeOf(name);
  if (place === undefined) {
    return name;
  }
  const { stage, number, of } = place;
  // A stage without a name is the image itself.
  const where = `[${/^stage-\d+$/.test(stage) ? "image" : stage} ${number}/${of}]`;
  const rest = withoutPlace(name).replaceAll(/--mount=\S+ /g, "");
  return `${where} ${commands[`${stage} ${of - number}`] ?? rest}`;
}

const withoutPlace = (name: string): string => name.replace(/^\[[^\]]*\] /, "");
