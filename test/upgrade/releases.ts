/** Installs releases on the stack from their bundles, as a user does, also when that is interrupted. */
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { logDir, root } from "../../hack/lib/paths.ts";

/** A multiplier of the API's rate limits that a constant load does not reach. */
export const RATE_LIMIT_SCALE = 100;

/**
 * Runs `hack/up.sh --bundle`.
 * @param killAfter milliseconds after which it and all that it started is killed; undefined: it ends by itself
 * @returns whether it was killed
 * @throws Error when it ended by itself, and not well
 */
export async function install(bundle: string, killAfter?: number): Promise<boolean> {
  await mkdir(logDir, { recursive: true });
  const path = join(logDir, "upgrade.log");
  const log = createWriteStream(path, { flags: "a" });
  const child = spawn("bash", ["hack/up.sh", "--bundle", bundle], {
    cwd: root,
    env: { ...process.env, SLIPWAY_RATE_LIMIT_SCALE: String(RATE_LIMIT_SCALE) },
    // A group of its own: helm and all others end with it.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const code = new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  const ended = new AbortController();
  const killed =
    killAfter === undefined
      ? false
      : await Promise.race([
          code.then(() => false),
          sleep(killAfter, true, { signal: ended.signal }).catch(() => false),
        ]);
  if (killed && child.pid !== undefined && child.exitCode === null) {
    process.kill(-child.pid, "SIGKILL");
  }
  const ending = await code;
  ended.abort();
  log.end();
  if (!killed && ending !== 0) {
    throw new Error(`hack/up.sh --bundle ${bundle} ended with ${ending}; see ${path}`);
  }
  return killed;
}
