import { createHmac } from "node:crypto";
import type { EngineName } from "./catalog.ts";
import type { RandomInt } from "./names.ts";
import type { ProjectType } from "./project/types.ts";

/** What the API server and the operator both have to know of a database's objects. No I/O. */

/** The types of project that are databases or key-value services. */
export const databaseTypes = [
  "postgresql",
  "mariadb",
  "clickhouse",
  "valkey",
] as const satisfies readonly EngineName[];

/** Whether a type of project is a database or a key-value service. */
export function isDatabaseType(type: ProjectType): type is EngineName {
  return (databaseTypes as readonly string[]).includes(type);
}

/** Names of the objects of a database, which all derive from the project's id. */
export function databaseNames(projectId: string) {
  return {
    /** StatefulSet, NetworkPolicy, PodDisruptionBudget, ServiceAccount; and the Service that leads to the primary. */
    main: projectId,
    /** Headless Service: a stable name for each pod. */
    nodes: `${projectId}-nodes`,
    /** Service that leads to the replicas. */
    replicas: `${projectId}-replicas`,
    /** Service that is reached from outside the cluster. */
    outside: `${projectId}-outside`,
    /** ConfigMap with the engine's configuration. */
    config: `${projectId}-config`,
    /** Secret with every account's password. */
    credentials: `${projectId}-credentials`,
    /** Secret with certificate, key and authority. */
    tls: `${projectId}-tls`,
  } as const;
}

/** Pod of an instance, counted from 0. */
export function databasePodName(projectId: string, ordinal: number): string {
  return `${projectId}-${ordinal}`;
}

/** Keys of the credentials Secret. Every value is text. */
export const credentialKeys = {
  username: "username",
  password: "password",
  database: "database",
  /** The password before a renewal, until the engine has taken over the new one. */
  previousPassword: "previous-password",
  /** On a renewal: `true` where the password before it is to end immediately, whatever uses it. */
  revokePrevious: "revoke-previous",
  /** The password before the last renewal, while instances that were started with it may log in; and until when: an RFC 3339 moment. */
  keptPassword: "kept-password",
  keptUntil: "kept-until",
  /** The engine's own accounts: never shown, never renewed. */
  superuser: "superuser-password",
  replication: "replication-password",
  monitor: "monitor-password",
} as const;

/** Content of a credentials Secret, decoded. */
export type DatabaseCredentials = Readonly<Record<string, string>>;

/** Keys that the Secret of every engine has. ClickHouse's and Valkey's own accounts use the same. */
const PASSWORDS = [
  credentialKeys.password,
  credentialKeys.superuser,
  credentialKeys.replication,
  credentialKeys.monitor,
] as const;

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const PASSWORD_LENGTH = 32;

/** A new password: 32 characters of `[A-Za-z0-9]`, 190 bits of chance. Any connection string takes it as it is. */
export function newPassword(random: RandomInt): string {
  let text = "";
  for (let i = 0; i < PASSWORD_LENGTH; i += 1) {
    text += ALPHABET[random(ALPHABET.length)];
  }
  return text;
}

/** User and database of a new project, the same for every project: they are no secret. */
const ACCOUNTS: Readonly<Record<EngineName, { username: string; database: string }>> = {
  postgresql: { username: "app", database: "app" },
  mariadb: { username: "app", database: "app" },
  clickhouse: { username: "app", database: "app" },
  valkey: { username: "app", database: "0" },
};

/**
 * What a credentials Secret must hold, keeping what it holds already.
 * @param given existing content, such as what a user of kubectl has set
 */
export function completeCredentials(
  engine: EngineName,
  given: DatabaseCredentials,
  random: RandomInt,
): DatabaseCredentials {
  const made = Object.fromEntries(PASSWORDS.map((key) => [key, given[key] || newPassword(random)]));
  return { ...ACCOUNTS[engine], ...given, ...made };
}

/**
 * Hash of the user and password that an engine has to apply. Keyed by a password that nobody is shown, so that it helps
 * nobody to guess one. 32 hex digits, for `status.database.credentialsHash`.
 */
export function credentialsHash(credentials: DatabaseCredentials): string {
  const { username, database, password, monitor } = credentialKeys;
  return createHmac("sha256", credentials[monitor] ?? "")
    .update(JSON.stringify([credentials[username], credentials[database], credentials[password]]))
    .digest("hex")
    .slice(0, 32);
}

/** {@link credentialsHash} with another password. */
export function hashWithPassword(credentials: DatabaseCredentials, password: string): string {
  return credentialsHash({ ...credentials, [credentialKeys.password]: password });
}

/** Every engine has TLS on the port that it is reached at; ClickHouse's is its HTTP interface. */
const SCHEMES: Readonly<Record<EngineName, string>> = {
  postgresql: "postgresql",
  mariadb: "mysql",
  clickhouse: "https",
  valkey: "rediss",
};

/** An address that the engine's own clients accept. The client decides how it verifies the certificate. */
export function connectionString(
  engine: EngineName,
  {
    host,
    port,
    database,
    username,
    password,
  }: { host: string; port: number; database: string; username: string; password: string },
): string {
  const [user, secret, path] = [username, password, database].map(encodeURIComponent);
  const name = host.includes(":") ? `[${host}]` : host;
  return `${SCHEMES[engine]}://${user}:${secret}@${name}:${port}/${path}`;
}

/**
 * The password that the engine has in force: the one before a renewal until it has taken over the new one. Undefined when it has none of them,
 * as while a database is set up.
 * @param inForce `status.database.credentialsHash`
 */
export function passwordInForce(
  credentials: DatabaseCredentials,
  inForce: string | undefined,
): string | undefined {
  const { password, previousPassword, keptPassword } = credentialKeys;
  const candidates = [password, previousPassword, keptPassword].map((key) => credentials[key]);
  return candidates.find(
    (candidate) => candidate !== undefined && hashWithPassword(credentials, candidate) === inForce,
  );
}
