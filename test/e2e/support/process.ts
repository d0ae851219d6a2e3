import { readdir, readFile, readlink } from "node:fs/promises";

export interface Found {
  /** On this machine. */
  readonly id: number;
  /** In its own process namespace, where 1 is the init. */
  readonly innerId: number;
  readonly command: string;
  readonly environment: readonly string[];
  readonly pidNamespace: string;
}

/** A process of this machine; undefined once it has ended. */
async function look(id: number): Promise<Found | undefined> {
  try {
    const [environment, command, pidNamespace, status] = await Promise.all([
      readFile(`/proc/${id}/environ`, "utf8"),
      readFile(`/proc/${id}/cmdline`, "utf8"),
      readlink(`/proc/${id}/ns/pid`),
      readFile(`/proc/${id}/status`, "utf8"),
    ]);
    return {
      id,
      innerId: Number(/^NSpid:.*\s(\d+)$/m.exec(status)?.[1] ?? id),
      command: command.replaceAll("\0", " "),
      environment: environment.split("\0"),
      pidNamespace,
    };
  } catch {
    return undefined;
  }
}

async function processes(): Promise<Found[]> {
  const ids = (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry)).map(Number);
  return (await Promise.all(ids.map(look))).filter((one) => one !== undefined);
}

/** The process namespaces of a pod's containers. */
const namespacesOf = (pod: string, all: readonly Found[]): Set<string> =>
  new Set(
    all.filter(({ environment }) => environment.includes(`HOSTNAME=${pod}`)).map((one) => one.pidNamespace),
  );

/**
 * Of processes with the same command line the one that does the work: neither an init that forked it, nor a child of it that has
 * not yet started its own program. Ids of the machine do not say so: they start over at a limit.
 */
export function workerOf(found: readonly Found[]): Found | undefined {
  const byInnerId = found.toSorted((a, b) => a.innerId - b.innerId);
  return byInnerId.find(({ innerId }) => innerId !== 1) ?? byInnerId[0];
}

/**
 * The process of a pod whose command line contains the words, on this machine: the embedded cluster's node is this
 * machine. Of several it is the one that does the work; see `workerOf`.
 * @throws when there is none
 */
export async function processOf(pod: string, words: string): Promise<number> {
  const all = await processes();
  const containers = namespacesOf(pod, all);
  // What runs in a container need not have its environment.
  const matching = all.filter(
    ({ pidNamespace, command }) => containers.has(pidNamespace) && command.includes(words),
  );
  const worker = workerOf(matching);
  if (!worker) {
    throw new Error(`no process ${words} of pod ${pod} runs on this machine`);
  }
  return worker.id;
}

/** The only process of this machine whose command line contains the words. @throws when there is none, or several */
export async function machineProcess(words: string): Promise<number> {
  const all = (await processes()).filter(({ command }) => command.includes(words));
  const [found] = all;
  if (!found || all.length > 1) {
    throw new Error(`${all.length} processes ${words} run on this machine`);
  }
  return found.id;
}

/** Sends a signal to a process of a pod; see `processOf`. */
export async function signalProcess(pod: string, words: string, signal: NodeJS.Signals): Promise<void> {
  process.kill(await processOf(pod, words), signal);
}

/** Sends a signal to every process of a pod's containers. @returns how many those are */
export async function signalPod(pod: string, signal: NodeJS.Signals): Promise<number> {
  const all = await processes();
  const containers = namespacesOf(pod, all);
  const found = all.filter(({ pidNamespace }) => containers.has(pidNamespace));
  return found.filter(({ id }) => signalled(id, signal)).length;
}

/** Whether there was such a process still. */
function signalled(id: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(id, signal);
  } catch {
    return false;
  }
}

/** Kills a process of a pod with SIGKILL. */
export const killProcess = (pod: string, words: string): Promise<void> =>
  signalProcess(pod, words, "SIGKILL");

/** IPv4 as `/proc/net/tcp` writes it, and as the end of what `/proc/net/tcp6` writes. */
const hexOf = (address: string): string =>
  address
    .split(".")
    .toReversed()
    .map((byte) => Number(byte).toString(16).padStart(2, "0"))
    .join("")
    .toUpperCase();

/** Rows of the TCP sockets in a process's network namespace. */
async function tcpRows(id: number): Promise<{ remote: string; inode: string }[]> {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((table) => readFile(`/proc/${id}/net/${table}`, "utf8")),
  );
  const rows = tables.flatMap((table) => table.trim().split("\n").slice(1));
  return rows.map((row) => {
    const fields = row.trim().split(/\s+/);
    return { remote: fields[2]?.split(":")[0] ?? "", inode: fields[9] ?? "" };
  });
}

/** Inodes of the sockets that a process has open, also of those whose connection is reset. */
export async function openSockets(id: number): Promise<Set<string>> {
  const files = await readdir(`/proc/${id}/fd`);
  const targets = await Promise.all(files.map((file) => readlink(`/proc/${id}/fd/${file}`).catch(() => "")));
  const inodes = targets.map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]);
  return new Set(inodes.filter((inode) => inode !== undefined));
}

/** Inodes of the connections in a process's network namespace that lead to an IPv4 address. */
export async function connectionsTo(id: number, address: string): Promise<Set<string>> {
  const own = (await tcpRows(id)).filter(({ remote }) => remote.endsWith(hexOf(address)));
  return new Set(own.map(({ inode }) => inode));
}

/** Inodes of the sockets that a process has open and that are no TCP connection, or were reset: the kernel lists those no more. */
export async function unlistedSockets(id: number): Promise<Set<string>> {
  // In this order: one that is opened meanwhile is listed.
  const open = await openSockets(id);
  const listed = new Set((await tcpRows(id)).map(({ inode }) => inode));
  return new Set([...open].filter((inode) => !listed.has(inode)));
}
