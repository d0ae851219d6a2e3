/**
 * The container with PostgreSQL's programs beside a job's own: SQL goes through a pipe in a folder that both have. So the one
 * with the keys of the bucket and the cluster has none of the ledger, and the other way around.
 */

import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { wholeLines } from "../sql-pieces.ts";

const POLL_MS = 100;
/** In which a container that was started has made its pipe: a new PostgreSQL server, too. */
const START_MS = 120_000;
/** In which a program whose output has ended reports how it ended; psql has to commit. */
const END_MS = 600_000;

/** Names in the folder, as `charts/slipway/files/recovery/*.sh` have them. */
const PIPE = "pipe";
const EXIT = "exit";
const ERRORS = "errors";

/** What `pg_dump` beside this container writes, from when it is read on. @throws Error with what it wrote, when it fails */
export async function* dumpFrom(folder: string): AsyncGenerator<string> {
  await untilReady(folder, "pg_dump");
  yield* wholeLines(createReadStream(join(folder, PIPE)));
  await succeeded(folder, "pg_dump");
}

/** Has `psql` beside this container load SQL into its server. @throws Error with what it wrote, when it fails */
export async function loadInto(folder: string, sql: AsyncIterable<string>): Promise<void> {
  await untilReady(folder, "psql");
  const pipe = createWriteStream(join(folder, PIPE));
  await once(pipe, "open");
  const broken = await pipeline(Readable.from(sql), pipe).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error,
  );
  // When psql has ended early, why it did says more than that the pipe broke.
  if (broken && broken.code !== "EPIPE") {
    throw broken;
  }
  await succeeded(folder, "psql");
  if (broken) {
    throw broken;
  }
}

/** Waits for the pipe. A server that cannot be started ends before there is one. */
async function untilReady(folder: string, program: string): Promise<void> {
  if ((await untilThere([join(folder, PIPE), join(folder, EXIT)], START_MS)).endsWith(EXIT)) {
    await succeeded(folder, program);
  }
}

async function succeeded(folder: string, program: string): Promise<void> {
  await untilThere([join(folder, EXIT)], END_MS);
  const code = (await readFile(join(folder, EXIT), "utf8")).trim();
  if (code !== "0") {
    const errors = await readFile(join(folder, ERRORS), "utf8").catch(() => "");
    throw new Error(`${program} failed with ${code}: ${errors.trim().slice(0, 1_000)}`);
  }
}

/** @returns the first of the files that is there */
async function untilThere(files: readonly string[], timeoutMs: number): Promise<string> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    for (const file of files) {
      if (await stat(file).catch(() => undefined)) {
        return file;
      }
    }
    if (performance.now() > deadline) {
      throw new Error(`the container with PostgreSQL has not made ${files[0]} in ${timeoutMs / 1_000} s`);
    }
    await sleep(POLL_MS);
  }
}
