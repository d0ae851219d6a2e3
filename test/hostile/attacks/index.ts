/** Every attack, in the order in which they are tried. */
import type { Attack } from "../attack.ts";
import { adminCommands } from "./admin-commands.ts";
import { alerts } from "./alerts.ts";
import { backups } from "./backups.ts";
import { budgets } from "./budgets.ts";
import { buildDisk } from "./build-disk.ts";
import { clockAhead } from "./clock-ahead.ts";
import { containerDisk } from "./container-disk.ts";
import { creations } from "./creations.ts";
import { domains } from "./domains.ts";
import { email } from "./email.ts";
import { execSessions } from "./exec-sessions.ts";
import { gitLists } from "./git-lists.ts";
import { gitStalled } from "./git-stalled.ts";
import { hooks } from "./hooks.ts";
import { idleConnections } from "./idle-connections.ts";
import { inventedKeys } from "./invented-keys.ts";
import { jobForks } from "./job-forks.ts";
import { keysWithoutGrants } from "./keys-without-grants.ts";
import { logDrains } from "./log-drains.ts";
import { logFlood } from "./log-flood.ts";
import { logStreams } from "./log-streams.ts";
import { metricRanges } from "./metric-ranges.ts";
import { oneOffRuns } from "./one-off-runs.ts";
import { patterns } from "./patterns.ts";
import { payments } from "./payments.ts";
import { references } from "./references.ts";
import { requestFlood } from "./request-flood.ts";
import { silentDatabases } from "./silent-databases.ts";
import { sleepers } from "./sleepers.ts";
import { slowCreations } from "./slow-creations.ts";
import { slowHeaders } from "./slow-headers.ts";
import { stalledBodies } from "./stalled-bodies.ts";
import { unreadAnswers } from "./unread-answers.ts";
import { usageReads } from "./usage-reads.ts";
import { variableGroups } from "./variable-groups.ts";
import { variables } from "./variables.ts";
import { webhooks } from "./webhooks.ts";

export const attacks: readonly Attack[] = [
  inventedKeys,
  stalledBodies,
  slowHeaders,
  idleConnections,
  keysWithoutGrants,
  hooks,
  payments,
  patterns,
  unreadAnswers,
  slowCreations,
  logStreams,
  execSessions,
  sleepers,
  logFlood,
  metricRanges,
  usageReads,
  budgets,
  logDrains,
  variables,
  references,
  variableGroups,
  webhooks,
  email,
  alerts,
  requestFlood,
  creations,
  domains,
  backups,
  containerDisk,
  jobForks,
  oneOffRuns,
  buildDisk,
  adminCommands,
  gitLists,
  gitStalled,
  silentDatabases,
  clockAhead,
];

/** @throws when there is no attack of that name */
export function attackNamed(name: string): Attack {
  const found = attacks.find((one) => one.name === name);
  if (found === undefined) {
    throw new Error(`no attack is called ${name}`);
  }
  return found;
}
