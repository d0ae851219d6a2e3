import { mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { toolDir } from "../lib/paths.ts";

/**
 * Puts kubectl and helm into `.slipway/bin`, for people: a bare machine has neither.
 * @param kubernetes the multi-call binary, which is kubectl when it is called so
 */
export async function linkTools(kubernetes: string, helm: string): Promise<void> {
  await mkdir(toolDir, { recursive: true });
  for (const [name, target] of [
    ["kubectl", kubernetes],
    ["helm", helm],
  ] as const) {
    await rm(join(toolDir, name), { force: true });
    await symlink(target, join(toolDir, name));
  }
}
