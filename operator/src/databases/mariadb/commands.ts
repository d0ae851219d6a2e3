/** Queries and orders of the operator, by the scripts in the members' containers. */

import { execIn } from "../common/steps.ts";
import type { ClusterContext, LivePod } from "../driver.ts";
import { type MemberState, parseMemberState } from "./member-state.ts";
import { paths } from "./names.ts";

/** A hanging member must not delay its own replacement. */
const EXEC_TIMEOUT_MS = 9_000;

type Work = Pick<ClusterContext, "client" | "signal">;

/** Queries the state of a member. @returns undefined when it does not answer */
export async function queryMember(pod: LivePod, { client, signal }: Work): Promise<MemberState | undefined> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(EXEC_TIMEOUT_MS)]);
  try {
    const command = ["/bin/sh", `${paths.config}/ask.sh`];
    const { stdout } = await execIn(pod, command, { client, signal: limited });
    return parseMemberState(stdout);
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** @param run the run that the order is meant for; any other run rejects it */
export async function order(
  pod: LivePod,
  name: "initialize" | "bootstrap" | "revive" | "restart" | "settle" | "note" | "lead" | "rest" | "reload",
  run: string,
  work: Work,
): Promise<boolean> {
  const { exitCode } = await execIn(pod, ["/bin/sh", `${paths.config}/order.sh`, name, run], work);
  return exitCode === 0;
}

/** Runs a script of statements, as the account that has every right. */
export function runScript(pod: LivePod, script: string, work: Work) {
  const client = `exec mariadb --no-defaults --socket=${paths.socket} --user="$(id -un)" --batch --skip-column-names`;
  return execIn(pod, ["/bin/sh", "-c", client], work, script);
}
