/** Commands of the operator to servers and Sentinels, by the client in their containers. */

import { createHash } from "node:crypto";
import { credentialKeys, type DatabaseCredentials } from "@slipway/crds";
import { ordinalOf } from "../common/pods.ts";
import { passwordsIn } from "../common/setup.ts";
import { execIn } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, LivePod } from "../driver.ts";
import {
  accounts,
  GROUP,
  nodeAddress,
  PROJECT_RULES,
  paths,
  SENTINEL_PORT,
  sizeOf,
  VALKEY_PORT,
} from "./names.ts";
import { DEFAULT_PRIORITY, type MemberState, type MemberStates, parseMemberState } from "./topology.ts";

/** A hanging server must not delay its own replacement for longer; on a busy node a command needs seconds. */
const EXEC_TIMEOUT_MS = 8_000;

type Work = Pick<ClusterContext, "client" | "signal">;

const CLI = ["valkey-cli", "--tls", "--cacert", `${paths.tls}/ca.crt`, "-h", "localhost"];
const SERVER = [...CLI, "-p", String(VALKEY_PORT), "--user", accounts.admin];
const SENTINEL = [...CLI, "-p", String(SENTINEL_PORT)];

/** The command that sets the passwords of the project's account, as hashes, and removes every other. Sessions stay. */
export function accountCommand(credentials: DatabaseCredentials): string {
  const hashes = passwordsIn(credentials).map(
    (password) => `#${createHash("sha256").update(password).digest("hex")}`,
  );
  return `ACL SETUSER ${credentials[credentialKeys.username]} reset on ${hashes.join(" ")} ${PROJECT_RULES}`;
}

/**
 * The command that corrects a replica's priority; undefined where it is right, and for a primary. A replica without data started with 0
 * and may be promoted once it has been linked: it has synchronized then, and stays promotable when the link breaks. A surplus
 * instance is not promoted while one that is kept has all data; without one, or without a primary, it may be the only one that has them.
 */
export function priorityCommand(
  database: Database,
  pod: LivePod,
  memberStates: MemberStates,
): string | undefined {
  const facts = memberStates.get(pod);
  if (sizeOf(database) === 1 || facts?.role !== "replica" || !facts.linked) {
    return undefined;
  }
  const isKept = (one: LivePod): boolean => ordinalOf(one) < database.instances;
  // One that was cut off may report to be a primary, too, or follow one that was.
  const hasSameData = (one: LivePod, { role, linked, follows }: MemberState): boolean =>
    role === "primary"
      ? nodeAddress(database, ordinalOf(one)) === facts.follows
      : linked && follows === facts.follows;
  const keptHasData = [...memberStates].some(([one, state]) => isKept(one) && hasSameData(one, state));
  const wanted = !isKept(pod) && keptHasData ? 0 : DEFAULT_PRIORITY;
  return facts.priority === wanted ? undefined : `CONFIG SET replica-priority ${wanted}`;
}

/**
 * Runs commands on a server, each of which replies OK, then queries its state.
 * @param enough ends the wait before the timeout
 * @returns undefined when it does not answer, or rejects a command
 */
export async function query(
  pod: LivePod,
  commands: readonly (string | undefined)[],
  { client, signal }: Work,
  enough?: AbortSignal,
): Promise<MemberState | undefined> {
  const given = commands.filter((command) => command !== undefined);
  const script = [...given, "INFO server replication", ""].join("\n");
  const limited = AbortSignal.any([
    signal,
    AbortSignal.timeout(EXEC_TIMEOUT_MS),
    ...(enough === undefined ? [] : [enough]),
  ]);
  try {
    const { stdout } = await execIn(pod, SERVER, { client, signal: limited }, script);
    const answers = stdout.split("\n").slice(0, given.length);
    return answers.every((answer) => answer.trim() === "OK") ? parseMemberState(stdout) : undefined;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** Attaches an instance to the primary. */
export function follow(
  database: Database,
  pod: LivePod,
  primary: LivePod,
  work: Work,
): Promise<MemberState | undefined> {
  const address = nodeAddress(database, ordinalOf(primary));
  return query(pod, [`REPLICAOF ${address} ${VALKEY_PORT}`], work);
}

/**
 * Has a Sentinel switch the primary over to a replica, which receives all writes before that: clients wait meanwhile.
 * @returns first word of its reply: OK when it has started
 */
export async function switchOver(pod: LivePod, { client, signal }: Work): Promise<string> {
  const { namespace, name = "" } = pod.metadata;
  const command = [...SENTINEL, "SENTINEL", "FAILOVER", GROUP, "COORDINATED"];
  const options = { container: "sentinel", command, signal, timeoutMs: EXEC_TIMEOUT_MS };
  const { stdout } = await client.podExec({ namespace, name }, options);
  return /^[A-Za-z]+/.exec(stdout)?.[0] ?? "";
}
