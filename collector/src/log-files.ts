/** Which files hold a container's log, as a kubelet leaves them: `0.log` is written to, `0.log.20261122-044209` was. */

import { createHash } from "node:crypto";
import { createReadStream, type Dirent } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { createGunzip } from "node:zlib";

/** One file of a container's log. */
export interface LogFile {
  path: string;
  isCompressed: boolean;
}

/** Of a line that a runtime wrote: it cuts what a container wrote into pieces of 16 KiB. */
const MOST_OF_A_LINE = 64 * 1024;

const NAME = /^(\d+)\.log(?:\.(\d{8}-\d{6}))?(\.gz)?$/;

/** Files in the order in which they were written: restart by restart, older first, last the one that is written to. */
export function inOrder(names: readonly string[]): string[] {
  return names
    .flatMap((name) => {
      const [, restart, rotated, compressed] = NAME.exec(name) ?? [];
      // A file that is being compressed exists twice for a moment: the compressed one is complete once it has its name.
      const isOldest = compressed !== undefined && names.includes(name.slice(0, -".gz".length));
      return restart === undefined || isOldest
        ? []
        : [{ name, restart: Number(restart), rotated: rotated ?? "~" }];
    })
    .sort((a, b) => a.restart - b.restart || (a.rotated < b.rotated ? -1 : a.rotated > b.rotated ? 1 : 0))
    .map(({ name }) => name);
}

/** The files of a container's folder, in order; none when the folder is removed. */
export async function logFiles(folder: string): Promise<LogFile[]> {
  const names = await readdir(folder).catch(ignoreMissing);
  return inOrder(names).map((name) => ({ path: join(folder, name), isCompressed: name.endsWith(".gz") }));
}

/** A file whose first line is known. */
export interface KnownFile {
  file: LogFile;
  /** Its identity, under any name and compression: its first line, in which the runtime has written the nanosecond. */
  identity: string;
}

/**
 * The files of a container's folder that have a line, in order, with the names of all, and whether there are no others that may
 * get one. Undefined while the kubelet is renaming or compressing: a file that is missed then would be passed over.
 */
export async function knownFiles(
  folder: string,
): Promise<{ files: KnownFile[]; names: string; areAll: boolean } | undefined> {
  const listed = await logFiles(folder);
  const heads = await Promise.all(listed.map(identityOf));
  const names = namesOf(listed);
  if (heads.includes("removed") || namesOf(await logFiles(folder)) !== names) {
    return undefined;
  }
  const files = listed.flatMap((file, index) => {
    const identity = heads[index];
    return identity === undefined ? [] : [{ file, identity }];
  });
  // A packed file does not grow: one without a line will have none.
  const areAll = listed.every(({ isCompressed }, index) => isCompressed || heads[index] !== undefined);
  return { files, names, areAll };
}

/** The names of files, as one text. */
export const namesOf = (files: readonly LogFile[]): string => files.map(({ path }) => path).join();

/** @returns undefined while there is no whole line */
async function identityOf(file: LogFile): Promise<string | "removed" | undefined> {
  try {
    return identityFrom(await headOf(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return "removed";
    }
    throw error;
  }
}

/** The same of a file that is open. */
export async function identityOfOpen(handle: FileHandle): Promise<string | undefined> {
  return identityFrom(await readHead(handle));
}

async function readHead(handle: FileHandle): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(MOST_OF_A_LINE), 0, MOST_OF_A_LINE, 0);
  return buffer.subarray(0, bytesRead);
}

function identityFrom(head: Buffer): string | undefined {
  const end = head.indexOf(0x0a);
  return end < 0 ? undefined : createHash("sha256").update(head.subarray(0, end)).digest("hex").slice(0, 32);
}

async function headOf({ path, isCompressed }: LogFile): Promise<Buffer> {
  if (!isCompressed) {
    const handle = await open(path);
    try {
      return await readHead(handle);
    } finally {
      await handle.close();
    }
  }
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of decompressed(path)) {
      parts.push(part);
      bytes += part.length;
      if (bytes >= MOST_OF_A_LINE || part.includes(0x0a)) {
        break;
      }
    }
  } catch (error) {
    if (!isDamage(error)) {
      throw error;
    }
  }
  return Buffer.concat(parts);
}

/** What a compressed file holds. */
export function decompressed(path: string): AsyncIterable<Buffer> & { destroy(): void } {
  const packed = createReadStream(path);
  const unpacked = createGunzip();
  packed.on("error", (error) => unpacked.destroy(error));
  // The reader gets the error; without a listener one that comes before the first read would end the process.
  unpacked.on("error", () => undefined);
  unpacked.on("close", () => packed.destroy());
  return packed.pipe(unpacked);
}

/** Whether what was packed is not what the kubelet packed: cut off when the machine lost its power. */
export const isDamage = (error: unknown): boolean =>
  String((error as NodeJS.ErrnoException).code).startsWith("Z_");

/** Whose log is read: containers of that name in a namespace's pods. */
export interface Source {
  namespace: string;
  container: string;
}

/**
 * Folders of the containers of a source below the kubelet's folder of pods' logs, as `pod's folder/container`. A pod's folder
 * is `namespace_name_uid`.
 */
export async function containerFolders(podLogs: string, { namespace, container }: Source): Promise<string[]> {
  const pods = await readdir(podLogs, { withFileTypes: true }).catch(ignoreMissing<Dirent>);
  return pods
    .filter((pod) => pod.isDirectory() && pod.name.startsWith(`${namespace}_`))
    .map((pod) => join(pod.name, container));
}

/** Of a folder that does not exist, no entries. */
export function ignoreMissing<T = string>(error: NodeJS.ErrnoException): T[] {
  if (error.code !== "ENOENT" && error.code !== "ENOTDIR") {
    throw error;
  }
  return [];
}
