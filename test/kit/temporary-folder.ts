import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Gives all workers of a test run one temporary folder, and removes it after them: a worker is ended by a signal, and leaves the
 * folders of servers that its files share. Its name is short: paths of Unix sockets are, and messages with paths. `globalSetup` of Vitest.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "t-"));
  // Servers that refuse to run as root have accounts of their own.
  await chmod(folder, 0o711);
  process.env.TMPDIR = folder;
  return () => rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
