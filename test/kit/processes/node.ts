import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../hack/lib/paths.ts";

/**
 * Starts a program of this repository with the same Node, and ends it with this process.
 * @param env all of its environment but PATH
 * @param output a file descriptor for what it prints; without it, this process's own
 */
export function startNode(
  script: string,
  args: string[],
  env: Record<string, string> = {},
  output: number | "inherit" = "inherit",
): ChildProcess {
  return spawn("setpriv", ["--pdeathsig", "KILL", process.execPath, join(root, script), ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", output, output],
  });
}

/** A key file for user tokens, which the API server does not start without. */
export function writeTokenKey(file: string): void {
  const { privateKey } = generateKeyPairSync("ed25519");
  writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
}
