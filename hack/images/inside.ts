import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "../lib/wait.ts";
import type { BuiltImage } from "./build.ts";
import { buildah } from "./store.ts";

export interface InsideOptions {
  uid: number;
  env?: Record<string, string>;
  /** Folders of this machine to see inside: `{[path inside]: path here}`. */
  mounts?: Record<string, string>;
}

/** A process that runs as process 1 inside an image's files. */
export interface InsideProcess {
  output: () => string;
  /** Of process 1, as this machine counts. */
  pid: () => Promise<number>;
  /** Sends a signal to process 1 and resolves to its exit code. */
  stop: (signal: NodeJS.Signals) => Promise<number | null>;
  exited: Promise<number | null>;
}

// Mounts live in the new mount namespace only, so nothing is left behind whatever happens to the process.
const enter = `
set -e
root=$1 user=$2 mounts=$3; shift 3
mount --rbind /dev "$root/dev"
printf '%s' "$mounts" | while IFS=: read -r inside here; do mount --bind "$here" "$root/$inside"; done
exec /usr/sbin/chroot --userspec="$user:$user" "$root" "$@"
`;

/**
 * Unpacks an image and runs commands in it without a container runtime: an own process namespace, the host's network.
 * For tests of the images, and for what is produced by running them; needs root.
 */
export async function inside(image: Pick<BuiltImage, "reference">): Promise<{
  run: (command: string[], options: InsideOptions) => InsideProcess;
  root: string;
  close: () => Promise<void>;
}> {
  const container = await buildah(["from", "--quiet", "--pull-never", image.reference]);
  const root = await buildah(["mount", container]);
  return {
    root,
    run: (command, options) => start(root, command, options),
    close: async () => void (await buildah(["rm", container])),
  };
}

function start(root: string, command: string[], options: InsideOptions): InsideProcess {
  const mounts = Object.entries(options.mounts ?? {});
  for (const path of ["dev", "proc", ...mounts.map(([path]) => path)]) {
    mkdirSync(join(root, path), { recursive: true });
  }
  const args = [
    `--mount-proc=${join(root, "proc")}`,
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "/bin/sh",
    "-c",
    enter,
    "enter",
    root,
    String(options.uid),
    mounts.map(([path, here]) => `${path}:${here}\n`).join(""),
  ];
  const child = spawn("/usr/bin/unshare", [...args, ...command], {
    env: { PATH: "/usr/bin:/bin", ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const exited = once(child, "close").then(([code]) => code as number | null);
  return {
    output: () => output,
    pid: () => firstChild(child),
    exited,
    stop: async (signal) => {
      process.kill(await firstChild(child), signal);
      return exited;
    },
  };
}

async function firstChild(parent: ChildProcess): Promise<number> {
  const pid = await waitFor("the process inside the image", 5_000, async () => {
    const children = await readFile(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8");
    return children.trim().split(" ")[0] || undefined;
  });
  return Number(pid);
}
