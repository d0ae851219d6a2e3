import { mkdir, open, readdir, readFile, rename, rm, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";

/** A file of a folder. */
export interface DiskFile {
  name: string;
  bytes: number;
  /** When it was written, in milliseconds since the epoch. */
  writtenAt: number;
}

/** What is done to files: each step is whole or not done when the process or the machine dies. */
export interface Disk {
  /** Makes a file and waits until its content is on the disk. */
  write(path: string, content: Buffer): Promise<void>;
  /** Gives a file another name, in place of one that had it, and waits until that is on the disk. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file, if it exists. It may exist again after a crash of the machine. */
  remove(path: string): Promise<void>;
  read(path: string): Promise<Buffer>;
  list(folder: string): Promise<DiskFile[]>;
  /** Bytes that may still be written where a folder is. */
  free(folder: string): Promise<number>;
}

/** The disk of this machine. */
export const realDisk: Disk = {
  async write(path, content) {
    const file = await open(path, "w", 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
  },
  async rename(from, to) {
    await rename(from, to);
    const folder = await open(dirname(to), "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  },
  remove: (path) => rm(path, { force: true }),
  read: (path) => readFile(path),
  async list(folder) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const entries = await readdir(folder, { withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    return Promise.all(
      files.map(async ({ name }) => {
        const { size, mtimeMs } = await stat(`${folder}/${name}`);
        return { name, bytes: size, writtenAt: mtimeMs };
      }),
    );
  },
  async free(folder) {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
};
