import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../lib/files.ts";
import { root, runDir } from "../lib/paths.ts";
import { isRunning, knownDaemons, startTime } from "./processes.ts";

/** The checkout that has this machine's embedded cluster. */
export interface Owner {
  root: string;
  /**
   * Whether any of its processes runs: a daemon, or the `hack/up.sh` that starts them. Without one, the cluster is what
   * a restart of the machine or a killed run left behind, and the next `hack/up.sh` of any checkout takes it down.
   */
  alive: boolean;
}

/** The process that last started the cluster, as in a daemon's pid file. */
interface OwnerFile {
  root: string;
  pid: number;
  startTime: string;
}

const ownerFile = (folder: string) => join(folder, "owner");

/** Writes that this machine's embedded cluster is this checkout's, and that this process is bringing it up. */
export async function claimMachine(folder = runDir, owner = root): Promise<void> {
  const claim: OwnerFile = { root: owner, pid: process.pid, startTime: startTime(process.pid) ?? "" };
  await writeFileAtomic(ownerFile(folder), JSON.stringify(claim), 0o644);
}

/** The checkout whose embedded cluster this machine has; undefined for none. */
export function ownerOfMachine(folder = runDir): Owner | undefined {
  const file = ownerFile(folder);
  if (!existsSync(file)) {
    return undefined;
  }
  const claim = parseOwner(readFileSync(file, "utf8"));
  const dirs = { run: folder, logs: folder };
  const alive =
    (claim.pid !== undefined && startTime(claim.pid) === claim.startTime) ||
    knownDaemons(folder).some((name) => isRunning(name, dirs));
  return { root: claim.root, alive };
}

/** Earlier versions wrote the checkout's path alone. */
function parseOwner(text: string): Partial<OwnerFile> & { root: string } {
  return text.startsWith("{") ? (JSON.parse(text) as OwnerFile) : { root: text };
}
