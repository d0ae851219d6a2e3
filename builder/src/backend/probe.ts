/** Probes whether a backend can run in this container: it builds a small image with everything that a build may need. */

import { randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redactor } from "../log/redact.ts";
import { OutputLines } from "../log/writer.ts";
import type { BuilderBackend } from "./backend.ts";

const TIMEOUT_MS = 60_000;

/** It needs a second user in the namespace, and a command that is never in the cache. */
const DOCKERFILE = `FROM scratch
COPY true /true
ARG TRIAL
USER 1000:1000
RUN ["/true"]
`;

/** @param folder for the probe's files alone @returns the backend's error; undefined when it built the image */
export async function probeBackend(
  backend: BuilderBackend,
  folder: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const [context, dockerfile] = [join(folder, "context"), join(folder, "dockerfile")];
  try {
    await mkdir(context, { recursive: true });
    await mkdir(dockerfile, { recursive: true });
    await writeFile(join(context, "true"), emptyProgram(process.arch), { mode: 0o755 });
    await writeFile(join(dockerfile, "Dockerfile"), DOCKERFILE);
    const outcome = await backend.build(
      {
        context,
        dockerfile,
        secrets: {},
        args: { TRIAL: randomUUID() },
        commands: {},
        output: join(folder, "image"),
        timeoutMs: TIMEOUT_MS,
        signal,
      },
      { step: () => undefined, output: () => new OutputLines(new Redactor({}), () => undefined) },
    );
    return outcome.ok ? undefined : outcome.timedOut ? "no image in time" : outcome.text.trim();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Machine code that exits with 0: the only content of the image. */
const programs: Partial<Record<NodeJS.Architecture, { machine: number; code: string }>> = {
  x64: { machine: 0x3e, code: "b83c00000031ff0f05" },
  arm64: { machine: 0xb7, code: "a80b8052000080d2010000d4" },
};
const BASE = 0x400000n;
const HEADERS = 120;

/** A complete ELF file. Pure. @throws Error for an architecture without code above */
export function emptyProgram(architecture: NodeJS.Architecture): Buffer {
  const program = programs[architecture];
  if (program === undefined) {
    throw new Error(`no probe of backends on ${architecture}`);
  }
  const code = Buffer.from(program.code, "hex");
  const file = Buffer.alloc(HEADERS + code.length);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  file.writeUInt16LE(2, 16);
  file.writeUInt16LE(program.machine, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BASE + BigInt(HEADERS), 24);
  file.writeBigUInt64LE(64n, 32);
  for (const [at, value] of [
    [52, 64],
    [54, 56],
    [56, 1],
  ] as const) {
    file.writeUInt16LE(value, at);
  }
  file.writeUInt32LE(1, 64);
  file.writeUInt32LE(5, 68);
  file.writeBigUInt64LE(BASE, 80);
  file.writeBigUInt64LE(BASE, 88);
  file.writeBigUInt64LE(BigInt(file.length), 96);
  file.writeBigUInt64LE(BigInt(file.length), 104);
  file.writeBigUInt64LE(0x1000n, 112);
  code.copy(file, HEADERS);
  return file;
}
