import { readdir, readFile } from "node:fs/promises";

/**
 * Kills the Node process of a pod with SIGKILL, on this machine: the embedded cluster's node is this machine.
 * @param script the end of its command line, such as `operator/src/main.ts`
 */
export async function killProcess(pod: string, script: string): Promise<void> {
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    // A process may end between the listing and the read; then it is not the one.
    const [environment = "", command = ""] = await Promise.all(
      ["environ", "cmdline"].map((file) => readFile(`/proc/${entry}/${file}`, "utf8").catch(() => "")),
    );
    if (environment.split("\0").includes(`HOSTNAME=${pod}`) && command.includes(script)) {
      process.kill(Number(entry), "SIGKILL");
      return;
    }
  }
  throw new Error(`no process ${script} of pod ${pod} runs on this machine`);
}
