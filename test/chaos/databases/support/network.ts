import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../../../../hack/lib/exec.ts";
import { processOf } from "../../../e2e/support/process.ts";

/**
 * Lets what a pod sends to an address vanish for a while, in the pod's own network namespace on this machine.
 * @param words of the command line of one of the pod's processes
 * @param address of IPv4
 */
export async function blackhole(pod: string, words: string, address: string, ms: number): Promise<void> {
  const inside = ["--net", "--target", String(await processOf(pod, words)), "ip", "route"];
  const route = ["blackhole", `${address}/32`];
  await run("nsenter", [...inside, "add", ...route]);
  try {
    await sleep(ms);
  } finally {
    // The pod, and its network namespace, may be deleted.
    await run("nsenter", [...inside, "del", ...route]).catch(() => undefined);
  }
}
