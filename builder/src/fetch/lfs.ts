/** Large files that the repository keeps outside (Git LFS), from its own server alone. */

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdtemp, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { StepError } from "../failures/codes.ts";
import type { Log } from "../log/writer.ts";
import type { FetchTask } from "../task.ts";
import type { TreeEntry } from "./git.ts";
import { authorization, type GitServer, isSameOrigin, requestServer } from "./server-request.ts";

/** Longest text of a pointer. */
const MAX_POINTER = 1024;
/** Files of one request. */
const BATCH = 100;
/** Longest answer about so many. */
const MAX_ANSWER = 1_000_000;
const TYPE = "application/vnd.git-lfs+json";

interface Context {
  entries: readonly TreeEntry[];
  task: FetchTask;
  server: GitServer;
  target: string;
  scratch: string;
  log: Log;
  signal?: AbortSignal;
}

/** What a pointer refers to. */
export interface Pointer {
  oid: string;
  /** In bytes. */
  size: number;
}

interface LargeFile extends Pointer {
  path: string;
  mode: string;
}

const answer = z.object({
  objects: z.array(
    z.object({
      oid: z.string(),
      error: z.object({ message: z.string() }).optional(),
      actions: z
        .object({
          download: z
            .object({ href: z.string(), header: z.record(z.string(), z.string()).optional() })
            .optional(),
        })
        .optional(),
    }),
  ),
});

/** Undefined when the text is no pointer. Pure. */
export function readPointer(pointer: string): Pointer | undefined {
  const [, oid, size] =
    /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:.*\n)*?oid sha256:([a-f0-9]{64})\nsize (\d{1,15})\n/.exec(
      pointer,
    ) ?? [];
  return oid === undefined ? undefined : { oid, size: Number(size) };
}

/** Puts the files in the place of their pointers. @throws StepError when one of them cannot be had from the repository's server */
export async function fetchLargeFiles(context: Context): Promise<void> {
  const { entries, task, target, log, scratch } = context;
  if (!entries.some(({ path }) => path === ".gitattributes" || path.endsWith("/.gitattributes"))) {
    return;
  }
  const files = await findPointers(entries, target);
  if (files.length === 0) {
    return;
  }
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (bytes > task.maxBytes) {
    throw StepError.of("GIT_REPOSITORY_TOO_LARGE", { name: `${Math.round(bytes / 1e6)} MB of large files` });
  }
  const folder = await mkdtemp(join(scratch, "lfs-"));
  const signal = AbortSignal.any([
    AbortSignal.timeout(task.timeoutSeconds * 1_000),
    ...(context.signal ? [context.signal] : []),
  ]);
  try {
    for (let start = 0; start < files.length; start += BATCH) {
      await fetchSome(files.slice(start, start + BATCH), folder, { ...context, signal });
    }
  } catch (error) {
    if (error instanceof StepError) {
      throw error;
    }
    throw StepError.of("GIT_SERVER_UNAVAILABLE", {
      said: `large files: ${error instanceof Error ? error.message : ""}`,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  log.info(`Fetched ${files.length} large files (Git LFS): ${Math.ceil(bytes / 1024)} KiB.`);
}

async function fetchSome(
  files: readonly LargeFile[],
  folder: string,
  { server, target, signal }: Context & { signal: AbortSignal },
): Promise<void> {
  const links = await askForLinks(files, server, signal);
  for (const file of files) {
    const { href, header = {} } = links.get(file.oid) ?? {};
    if (href === undefined) {
      throw StepError.of("GIT_LFS_OBJECT_UNAVAILABLE", { name: file.path });
    }
    const url = new URL(href);
    if (!isSameOrigin(server, url)) {
      throw StepError.of("GIT_LFS_OBJECT_UNAVAILABLE", {
        name: file.path,
        said: `It is kept at ${url.host}.`,
      });
    }
    const { status, body } = await requestServer(server, { method: "GET", url, headers: header, signal });
    if (status !== 200) {
      body.resume();
      refuse(status, file.path);
    }
    const loaded = join(folder, file.oid);
    await pipeline(
      body,
      bounded(file),
      createWriteStream(loaded, { mode: file.mode === "100755" ? 0o777 : 0o666 }),
      {
        signal,
      },
    );
    await rename(loaded, join(target, file.path));
  }
}

/** Where each of the files is to be had. */
async function askForLinks(files: readonly LargeFile[], server: GitServer, signal: AbortSignal) {
  const base = server.url.replace(/\/$/, "").replace(/(\.git)?$/, ".git");
  const objects = [...new Map(files.map(({ oid, size }) => [oid, { oid, size }])).values()];
  const { status, body } = await requestServer(server, {
    method: "POST",
    url: new URL(`${base}/info/lfs/objects/batch`),
    headers: { ...(await authorization(server)), accept: TYPE, "content-type": TYPE },
    body: JSON.stringify({ operation: "download", transfers: ["basic"], objects }),
    signal,
  });
  if (status !== 200) {
    body.resume();
    refuse(status, files[0]?.path ?? "");
  }
  let length = 0;
  const answered = await text(
    body.map((part: Buffer) => {
      length += part.length;
      if (length > MAX_ANSWER) {
        throw new Error("an answer without an end");
      }
      return part;
    }),
  );
  const { data } = answer.safeParse(JSON.parse(answered));
  return new Map((data?.objects ?? []).map(({ oid, actions }) => [oid, actions?.download]));
}

function refuse(status: number, path: string): never {
  if (status === 401 || status === 403) {
    throw StepError.of("GIT_REPOSITORY_AUTH_FAILED");
  }
  if (status >= 500 || status === 429) {
    throw StepError.of("GIT_SERVER_UNAVAILABLE", { said: `It answered ${status} about large files.` });
  }
  throw StepError.of("GIT_LFS_OBJECT_UNAVAILABLE", { name: path });
}

/** Passes on what the pointer refers to, and nothing else. */
function bounded({ oid, size, path }: LargeFile) {
  return async function* (body: AsyncIterable<Buffer>) {
    const hash = createHash("sha256");
    let length = 0;
    for await (const part of body) {
      length += part.length;
      if (length > size) {
        break;
      }
      hash.update(part);
      yield part;
    }
    if (length !== size || hash.digest("hex") !== oid) {
      throw StepError.of("GIT_LFS_OBJECT_UNAVAILABLE", {
        name: path,
        said: "The server has sent another one.",
      });
    }
  };
}

async function findPointers(entries: readonly TreeEntry[], target: string): Promise<LargeFile[]> {
  const found: LargeFile[] = [];
  for (const { path, size, mode, type } of entries) {
    if (type === "blob" && mode !== "120000" && size > 100 && size < MAX_POINTER) {
      const pointer = readPointer(await readText(join(target, path)));
      if (pointer !== undefined) {
        found.push({ path, mode, ...pointer });
      }
    }
  }
  return found;
}

async function readText(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}
