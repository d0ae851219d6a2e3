import { checkServerIdentity } from "node:tls";
import { Redis } from "iovalkey";
import type { WriteSession } from "./acknowledged.ts";
import { uniqueName } from "./api.ts";
import { cluster } from "./cluster.ts";
import { type DatabaseProject, databaseAuthority, everybody } from "./databases.ts";

export type Profile = "key_value" | "cache" | "queue";

/** The body of a creation of a service that everybody may connect to. */
export function valkeyProject(
  plan: string,
  profile: Profile,
  config: Readonly<Record<string, unknown>> = {},
) {
  const { ingress_white_list } = everybody;
  return {
    name: uniqueName("valkey"),
    plan,
    payment_mode: "hourly",
    config: {
      type_project: "valkey",
      profile,
      version: "9.1.1",
      ...(profile === "cache" ? {} : { storage: { persistent: true, capacity: 1 } }),
      network_access: { ingress_white_list },
      ...config,
    },
  };
}

/** Where a connection goes to, and the name that the certificate must have. */
interface Target {
  host: string;
  port: number;
  name: string;
}

async function connect(
  { connection }: DatabaseProject,
  { host, port, name }: Target,
  password: string,
): Promise<Redis> {
  const client = new Redis({
    host,
    port,
    username: connection.username,
    password,
    tls: {
      ca: databaseAuthority(),
      // An address is no name that TLS sends; the certificate is checked for it all the same.
      checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
    },
    lazyConnect: true,
    // The caller decides about another connection.
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    connectTimeout: 3_000,
    commandTimeout: 5_000,
  });
  let failed: Error | undefined;
  client.on("error", (error: Error) => {
    failed ??= error;
  });
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.disconnect();
    // The server's answer is more precise than that the connection ended.
    throw failed ?? error;
  }
}

/** Connects with what the creation returned, the certificate checked. */
export function connectValkey(
  project: DatabaseProject,
  password = project.connection.password,
): Promise<Redis> {
  const { host, port } = project.connection;
  return connect(project, { host, port, name: host }, password);
}

/** Connects to one pod, past every Service. */
export async function connectPod(project: DatabaseProject, pod: string): Promise<Redis> {
  const { status } = await cluster.core.readNamespacedPod({ namespace: project.namespace, name: pod });
  if (!status?.podIP) {
    throw new Error(`${pod} has no address`);
  }
  const name = `${pod}.${project.id}-nodes.${project.namespace}.svc`;
  return connect(project, { host: status.podIP, port: 6379, name }, project.connection.password);
}

const ROWS = "rows";

/** Ids of all rows that are there. */
export async function readRows(client: Redis): Promise<Set<number>> {
  return new Set((await client.smembers(ROWS)).map(Number));
}

/** Writes rows over a connection. Valkey does not count its primaries. */
export function rowsOver(client: Redis, by: string): WriteSession {
  return {
    async insert(id) {
      if ((await client.sadd(ROWS, id)) !== 1) {
        throw new Error(`row ${id} was there`);
      }
      return { by, term: 0 };
    },
    async close() {
      client.disconnect();
    },
  };
}
