/** `SHA256SUMS` of a folder, in the format of sha256sum(1). */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { forEachConcurrently } from "../../lib/concurrently.ts";
import { UserError } from "../../lib/steps.ts";
import { BUNDLE } from "./manifest.ts";

/** Files that the checksums cannot have: they are made from them. */
const WITHOUT: readonly string[] = [BUNDLE.checksums, BUNDLE.signature];

/** Lines of `SHA256SUMS` as digests by path. @throws UserError for a line that is none */
export function parseChecksums(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split("\n")) {
    if (line === "") {
      continue;
    }
    const [, digest, path] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? [];
    if (digest === undefined || path === undefined || found.has(path)) {
      throw new UserError(`${BUNDLE.checksums} has a line that is none: ${line.slice(0, 100)}`);
    }
    found.set(path, digest);
  }
  return found;
}

/** Writes `SHA256SUMS` of all files of a folder. @returns digests by path, relative to the folder */
export async function writeChecksums(folder: string): Promise<Map<string, string>> {
  const digests = await digestsOf(folder);
  const lines = [...digests].map(([path, digest]) => `${digest}  ${path}\n`);
  await writeFile(join(folder, BUNDLE.checksums), lines.join(""));
  return digests;
}

/**
 * Checks that a folder has exactly the files of its `SHA256SUMS`, with their contents.
 * @throws UserError that names a file that was changed, added or removed
 */
export async function verifyChecksums(folder: string): Promise<void> {
  const text = await readFile(join(folder, BUNDLE.checksums), "utf8").catch(() => {
    throw new UserError(`${folder} is no bundle: it has no ${BUNDLE.checksums}`);
  });
  const expected = parseChecksums(text);
  const found = await digestsOf(folder);
  for (const [path, digest] of expected) {
    if (found.get(path) !== digest) {
      const what = found.has(path) ? "is not what it was when the bundle was made" : "is missing";
      throw new UserError(`${path} ${what}: copy the bundle again`);
    }
  }
  for (const path of found.keys()) {
    if (!expected.has(path)) {
      throw new UserError(`${path} is not of the bundle: remove it, or copy the bundle again`);
    }
  }
}

/** SHA-256 of every file of a folder by its path, sorted; a symbolic link is refused, for it may lead outside. */
async function digestsOf(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const digests = new Map<string, string>();
  const paths = entries.flatMap((entry) => {
    const path = join(entry.parentPath, entry.name).slice(folder.length + 1);
    if (!entry.isFile() && !entry.isDirectory()) {
      throw new UserError(`${path} is neither a file nor a folder`);
    }
    return entry.isFile() && !WITHOUT.includes(path) ? [path] : [];
  });
  await forEachConcurrently(paths, 4, async (path) => {
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(join(folder, path), { highWaterMark: 1 << 20 })) {
      hash.update(chunk as Buffer);
    }
    digests.set(path, hash.digest("hex"));
  });
  return new Map([...digests].sort(([a], [b]) => (a < b ? -1 : 1)));
}
