/** What the operator does on servers by statements: database, user, and the check of several servers' replication. */

import { randomBytes } from "node:crypto";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { isReady, ordinalOf, processOf } from "../common/pods.ts";
import { mustSetPassword, passwordsHash } from "../common/setup.ts";
import type { ClusterState, LivePod } from "../driver.ts";
import type { Cluster } from "../reconciler.ts";
import { type query, type Server, StatementError } from "./http-client.ts";
import { accounts, HTTPS_PORT, serverAddress } from "./names.ts";
import {
  databaseStatement,
  forgetStatements,
  membersStatement,
  READ_ONLY,
  serverNames,
  userStatements,
  VERSION,
} from "./sql.ts";

/** How often several servers are queried for whether they reach their Keepers. */
const QUERY_INTERVAL_MS = 20_000;
/** A server that does not answer blocks its caller until the timeout. */
export const QUERY_RETRY_MS = 10_000;

export interface ServerMemory {
  /** What each process was set up with, by process. */
  setUp: Map<string, string>;
  /** Version of the primary's process. */
  version?: { process: string; text: string };
}

/** Sends statements to a server; replaced in tests. */
export type Query = typeof query;

type QueryServer = (
  cluster: Omit<Cluster, "memory">,
  pod: LivePod,
  statements: readonly string[],
) => Promise<string[]>;

/** A server on a node that is not ready is not queried, and few concurrently of those that did not answer before. */
export function queryServerBy(send: Query): QueryServer {
  return async (cluster, pod, statements) => {
    const server = await serverOf(cluster, pod);
    return cluster.context.queryMember(pod, () => send(server, statements, cluster.context.signal));
  };
}

/** The connection to a server: its pod's address as it is now. */
async function serverOf(
  { database, context }: Omit<Cluster, "memory">,
  { metadata }: LivePod,
): Promise<Server> {
  const { authority, client, credentials, signal } = context;
  const { namespace, name = "" } = metadata;
  type Pod = KubernetesObject & { status?: { podIP?: string } };
  const pod = await client.getOrUndefined<Pod>(resources.pods, { namespace, name }, { signal });
  if (!pod?.status?.podIP || pod.metadata?.uid !== metadata.uid) {
    throw Object.assign(new Error("the pod was deleted"), { code: "GONE" });
  }
  return {
    ip: pod.status.podIP,
    port: HTTPS_PORT,
    name: serverAddress(database, name),
    authority,
    user: accounts.admin,
    password: credentials["superuser-password"] ?? "",
  };
}

/**
 * Ensures the database on every server that serves, and the user on one, once for each process and each content of the Secret.
 * @returns the server's version; undefined when it could not be done now
 */
export async function setUpServers(
  cluster: Cluster<ServerMemory>,
  primary: LivePod,
  queryServer: QueryServer,
): Promise<string | undefined> {
  const { database, live, memory } = cluster;
  const before = memory.setUp;
  memory.setUp = new Map();
  const key = [passwordsHash(database, cluster.context), database.accountsHash].join("/");
  const others = live.pods.filter((pod) => pod !== primary && isReady(pod));
  for (const pod of [primary, ...others]) {
    const process = processOf(pod);
    const wanted = pod === primary ? `${key}/user` : key;
    if (before.get(process) !== wanted && !(await setUpServer(cluster, pod, primary, queryServer))) {
      return undefined;
    }
    memory.setUp.set(process, wanted);
  }
  return memory.version?.process === processOf(primary) ? memory.version.text : undefined;
}

async function setUpServer(
  cluster: Cluster<ServerMemory>,
  pod: LivePod,
  primary: LivePod,
  queryServer: QueryServer,
): Promise<boolean> {
  const { database, memory, context } = cluster;
  const { credentials, log } = context;
  const setPassword = mustSetPassword(database, context);
  const salt = randomBytes(16).toString("hex");
  const statements = [
    databaseStatement(database, credentials),
    ...(pod === primary ? [...userStatements(credentials, { setPassword, salt }), VERSION] : []),
  ];
  try {
    const answers = await queryServer(cluster, pod, statements);
    if (pod === primary) {
      memory.version = { process: processOf(pod), text: answers.at(-1) ?? "" };
    }
    return true;
  } catch (error) {
    // A server's message about a statement may repeat it.
    const { status, code } = error instanceof StatementError ? error : {};
    const reason = error instanceof StatementError ? undefined : (error as NodeJS.ErrnoException).code;
    log.warn({ pod: pod.metadata.name, status, code, reason }, "a database could not be set up");
    return false;
  }
}

/** Several servers: whether they reach their Keepers, and which deleted servers they still wait for. */
export async function checkReplication(
  cluster: Cluster,
  primary: LivePod,
  queryServer: QueryServer,
): Promise<Partial<ClusterState>> {
  const { database, live, context } = cluster;
  const { credentials } = context;
  try {
    const statements = [READ_ONLY, membersStatement(credentials)];
    const [readOnly, members = ""] = await queryServer(cluster, primary, statements);
    const forgotten = forgetStatements(members, credentials, serverNames(database));
    // One whose volume still exists may return.
    const deleted = live.claims.every((claim) => ordinalOf(claim) < database.instances);
    if (forgotten.length > 0 && deleted && database.members === database.instances) {
      await queryServer(cluster, primary, forgotten);
    }
    return readOnly === "0"
      ? { requeueAfterMs: QUERY_INTERVAL_MS }
      : {
          missing: {
            reason: "Recovering",
            message: "Tables take no writes until the Keepers agree again.",
          },
          requeueAfterMs: QUERY_RETRY_MS,
        };
  } catch (error) {
    const { code } = error as { code?: string };
    context.log.warn({ pod: primary.metadata.name, code }, "a database's replication could not be checked");
    return { requeueAfterMs: QUERY_RETRY_MS };
  }
}
