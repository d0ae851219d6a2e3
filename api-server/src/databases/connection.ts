import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  completeCredentials,
  connectionString,
  credentialKeys,
  type DatabaseCredentials,
  databaseNames,
  type EngineName,
  type Project,
} from "@slipway/crds";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";

/** The Secret with a database's credentials, and the connection as `/v1` shows it. The Secret's content is never logged, nor stored anywhere else. */

export interface CredentialsSecret extends KubernetesObject {
  data?: Readonly<Record<string, string>>;
}

/** Content of a Secret as the apiserver returns it. */
export function decodeCredentials({ data = {} }: CredentialsSecret): DatabaseCredentials {
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]),
  );
}

/** Content for a Secret. */
export function encodeCredentials(credentials: DatabaseCredentials): Record<string, string> {
  return Object.fromEntries(
    Object.entries(credentials).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
}

/** New passwords for every account of an engine. */
export function newCredentials(engine: EngineName): DatabaseCredentials {
  return completeCredentials(engine, {}, randomInt);
}

/** The Secret as it is live; undefined when there is none. @throws KubeError */
export function readCredentialsSecret(
  kube: KubeClient,
  { namespace, name }: { namespace?: string | undefined; name: string },
): Promise<CredentialsSecret | undefined> {
  const ref = { namespace, name: databaseNames(name).credentials };
  return kube.getOrUndefined<CredentialsSecret>(resources.secrets, ref);
}

/** How clients connect to a database, as `/v1` shows it. Pure. */

export interface Address {
  host: string;
  port: number;
}

/** The connection without the password. */
export interface Connection extends Address {
  database: string;
  username: string;
}

/** The connection as it is shown once: at creation, and when the password is renewed. */
export interface SecretConnection extends Connection {
  password: string;
  connectionString: string;
}

/**
 * Where clients connect: from outside where the database is reached from there, else from the organization's own projects.
 * Undefined until the operator has reported it, and the external address is assigned.
 */
export function addressOf({ status }: Project): Address | undefined {
  const { host, port, inside } = status?.database ?? {};
  if (host !== undefined && port !== undefined) {
    return { host, port };
  }
  const isAwaited = status?.conditions?.some(
    ({ type, status }) => type === "AddressReady" && status !== "True",
  );
  return inside === undefined || isAwaited ? undefined : { host: inside.host, port: inside.port };
}

/** Without a password; null while the database is not reached yet. */
export function connectionOf(project: Project): Connection | null {
  const address = addressOf(project);
  const { name, username } = project.status?.database ?? {};
  if (!address || name === undefined || username === undefined) {
    return null;
  }
  return { ...address, database: name, username };
}

/** The connection with the content of the Secret; null while the database is not reached yet. */
export function secretConnectionOf(
  project: Project,
  credentials: DatabaseCredentials,
): SecretConnection | null {
  const connection = connectionOf(project);
  if (!connection) {
    return null;
  }
  const { database, username, password } = credentialKeys;
  const whole = {
    ...connection,
    database: credentials[database] ?? connection.database,
    username: credentials[username] ?? connection.username,
    password: credentials[password] ?? "",
  };
  return { ...whole, connectionString: connectionString(project.spec.type as EngineName, whole) };
}

/** Until when the password before the last renewal is accepted at the latest, where it is. */
export function previousPasswordView({ status }: Project): { previous_password_expires_at?: string } {
  const until = status?.database?.previousPassword?.until;
  return until === undefined ? {} : { previous_password_expires_at: until };
}

/** `database` of the answers about postgresql, mariadb and clickhouse. */
export function databaseView({ resource, instances }: ApiProject, connection: Connection | null) {
  return { connection, version: resource.spec.version ?? "", replicas: instances };
}

/**
 * `managed_service` of the answers about Valkey. The connection string has the password, and so is there only when
 * that is shown; what is not known yet is null.
 */
export function managedServiceView(
  { resource }: ApiProject,
  connection: Connection | SecretConnection | null,
) {
  const { profile, version = "" } = resource.spec;
  const {
    host = null,
    port = null,
    username = resource.status?.database?.username ?? null,
  } = connection ?? {};
  return {
    engine: "valkey",
    profile,
    version,
    username,
    host,
    port,
    tls: true,
    ...(connection && "connectionString" in connection
      ? { connection_string: connection.connectionString }
      : {}),
  };
}

/** How long the answer to a creation waits for the address, which the operator has within a moment. */
export const ADDRESS_LIMIT_MS = 10_000;
const POLL_INTERVAL_MS = 50;

/**
 * The project once its status has the address for clients; or as it is when that takes too long, or when the operator rejects it.
 */
export async function awaitAddress(
  created: ApiProject,
  { projects }: Pick<Services, "projects">,
  limitMs: number = ADDRESS_LIMIT_MS,
): Promise<ApiProject> {
  const deadline = Date.now() + limitMs;
  let now = created;
  while (connectionOf(now.resource) === null && !isRefused(now) && Date.now() < deadline) {
    await sleep(POLL_INTERVAL_MS);
    const found = await projects.find(created.organizationId, created.id);
    // Deleted meanwhile.
    if (!found) {
      break;
    }
    now = found;
  }
  return now;
}

function isRefused({ resource: { status } }: ApiProject): boolean {
  return status?.conditions?.some(({ type, status }) => type === "Accepted" && status === "False") ?? false;
}
