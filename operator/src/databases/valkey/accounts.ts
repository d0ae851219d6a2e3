/** What each account may do, as an ACL has it, without its password. Pure. */

import { credentialKeys, type DatabaseCredentials } from "@slipway/crds";
import { accounts } from "./names.ts";

/** All keys and channels, and every command that is about data rather than the server. */
export const PROJECT_RULES = [
  "~* &* +@all -@admin -@dangerous",
  "+info +keys +sort +sort_ro +flushdb +flushall +restore +role +client|list +slowlog|len",
].join(" ");

/** Everything, for the operator. */
export const ADMIN_RULES = "~* &* +@all";

/**
 * What replicas and Sentinels need of each other: what Valkey's own sentinel.conf lists, and that a Sentinel pauses clients
 * while a primary hands over (sentinel.c).
 */
export const REPLICATION_RULES = [
  "&* -@all +psync +replconf +ping +hello +auth +multi +exec +slaveof +replicaof +failover +role +info",
  "+publish +subscribe +config|rewrite +client|setname +client|setinfo +client|kill +client|pause +client|unpause +script|kill",
].join(" ");

/** Figures about the server, and no key. */
export const MONITOR_RULES = [
  "-@all +ping +hello +auth +info +dbsize +memory|stats +slowlog|len",
  "+latency|latest +latency|history +latency|histogram +client|setname +client|setinfo",
].join(" ");

/** Names that are safe as one word of an ACL and of a script. */
const USERNAME = /^[A-Za-z0-9_-]{1,64}$/;
const RESERVED: readonly string[] = ["default", ...Object.values(accounts)];

/** What is wrong with a project's credentials, as a sentence; undefined when nothing is. */
export function credentialsProblem(credentials: DatabaseCredentials): string | undefined {
  const username = credentials[credentialKeys.username] ?? "";
  if (!USERNAME.test(username)) {
    return "The username must have 1 to 64 letters, digits, _ or -.";
  }
  return RESERVED.includes(username) ? `The username ${username} is the platform's own.` : undefined;
}
