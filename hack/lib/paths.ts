import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root, without a trailing slash. */
export const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** What a stack keeps between runs: certificates, etcd's data, images, logs. Ignored by git. */
export const stateDir = join(root, ".slipway");
export const logDir = join(stateDir, "logs");
export const pkiDir = join(stateDir, "pki");
export const confDir = join(stateDir, "conf");
export const stackFile = join(stateDir, "stack.env");
/** kubectl and helm of the stack. */
export const toolDir = join(stateDir, "bin");
export const adminKubeconfig = join(stateDir, "kubeconfig");

/** Sockets and pid files of the one embedded cluster that a machine can have. */
export const runDir = "/run/slipway";

/** What every checkout of the same sources shares. */
export const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "slipway");
/** Built Go binaries. */
export const binaryCache = join(cacheDir, "bin");
