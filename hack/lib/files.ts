import { readFile, rename, rm, writeFile } from "node:fs/promises";

/**
 * Replaces a file in one step, so that a reader sees the old or the new one; mode 0600 by default. A file that
 * already has this text is not touched: some daemons end when their configuration is written.
 */
export async function writeFileAtomic(path: string, text: string, mode = 0o600): Promise<void> {
  const current = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") {
      return undefined;
    }
    throw error;
  });
  if (current === text) {
    return;
  }
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, text, { mode });
  await rename(temporary, path);
}

/**
 * Creates a file or folder as a whole, or not at all; what another process has created there meanwhile stays.
 * @param write creates it at the path that it is called with
 */
export async function createWhole(path: string, write: (draft: string) => Promise<unknown>): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  try {
    await write(draft);
    await rename(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") {
        throw error;
      }
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
