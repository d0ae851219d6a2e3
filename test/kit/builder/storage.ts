import { rm } from "node:fs/promises";
import { run } from "../../../hack/lib/exec.ts";

/** Removes a folder with layers that a builder backend has unpacked: without root they belong to accounts of its user namespace. */
export async function removeStorage(folder: string): Promise<void> {
  if (process.getuid?.() === 0) {
    await rm(folder, { recursive: true, force: true });
  } else {
    await run("buildah", ["unshare", "rm", "-rf", folder]);
  }
}
