import { createHash } from "node:crypto";
import { parse } from "yaml";

/** How a user proves who it is. */
export interface Identified {
  /** Hexadecimal SHA-256 of password and salt. */
  sha256: string;
  salt?: string;
}

/** Who may connect. The engine here has no accounts of its own: this says who reads, who writes and who manages users. */
export interface User extends Identified {
  name: string;
  /** Other passwords that are accepted as well. */
  others?: readonly Identified[];
  /** May change nothing. */
  readOnly: boolean;
  /** May create and change users. */
  manages: boolean;
}

/** What of ClickHouse's configuration matters here. */
export interface Config {
  /** Where everything is kept. */
  path: string;
  /** Port without TLS; absent: none. */
  httpPort?: number;
  /** Port with TLS, which then has its files. */
  httpsPort?: number;
  tls?: { certificate: string; key: string };
  /** Concurrent statements; more of them wait. */
  maxConcurrentQueries: number;
  /** Bytes that all statements together may take; absent: what the container's limit leaves. */
  maxMemory?: number;
  users: User[];
}

type Tree = { [key: string]: unknown };

/**
 * Reads configuration as ClickHouse does: files in the order of their names, later ones over earlier ones, key by key. Keys
 * that mean nothing here are left alone: the files are the real server's too.
 * @param texts YAML of config.d and users.d
 * @param env variables that `@from_env` names
 * @throws Error for a value that cannot be right
 */
export function readConfig(texts: string[], env: NodeJS.ProcessEnv): Config {
  const tree = texts.reduce<Tree>((merged, text) => merge(merged, treeOf(parse(text))), {});
  const resolved = resolveTree(tree, env);
  const server = treeOf(treeOf(resolved.openSSL).server);
  const [certificate, key] = [server.certificateFile, server.privateKeyFile];
  const tls = typeof certificate === "string" && typeof key === "string" ? { certificate, key } : undefined;
  const httpsPort = port(resolved.https_port, "https_port");
  if (httpsPort !== undefined && !tls) {
    throw new Error("https_port needs openSSL.server's files");
  }
  return {
    path: typeof resolved.path === "string" ? resolved.path : "/var/lib/clickhouse/",
    httpPort: "http_port" in resolved || httpsPort ? port(resolved.http_port, "http_port") : 8123,
    httpsPort,
    tls,
    maxConcurrentQueries: Math.min(whole(resolved.max_concurrent_queries) ?? 16, 64),
    maxMemory: whole(resolved.max_server_memory_usage) || undefined,
    users: usersOf(resolved),
  };
}

function usersOf(tree: Tree): User[] {
  const profiles = treeOf(tree.profiles);
  return Object.entries(treeOf(tree.users)).map(([name, value]) => {
    const user = treeOf(value);
    const { password, password_sha256_hex: hash } = user;
    const profile = treeOf(profiles[String(user.profile ?? "default")]);
    return {
      name,
      // The password of a user of whom none is given is the empty one, as it is with ClickHouse.
      sha256:
        typeof hash === "string"
          ? hash.toLowerCase()
          : sha256(password === undefined ? "" : String(password)),
      readOnly: whole(profile.readonly) === 1,
      manages: whole(user.access_management) === 1,
    };
  });
}

/** Hexadecimal SHA-256 of a text. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Replaces `{"@from_env": NAME}` by the variable's value, and drops keys with `"@remove"`. */
function resolveTree(tree: Tree, env: NodeJS.ProcessEnv): Tree {
  const entries = Object.entries(tree).flatMap(([key, value]): [string, unknown][] => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return [[key, value]];
    }
    const inner = treeOf(value);
    if ("@remove" in inner) {
      return [];
    }
    const name = inner["@from_env"];
    if (typeof name !== "string") {
      return [[key, resolveTree(inner, env)]];
    }
    const found = env[name];
    if (found === undefined) {
      throw new Error(`the variable ${name} of ${key} is not set`);
    }
    return [[key, found]];
  });
  return Object.fromEntries(entries);
}

function merge(below: Tree, above: Tree): Tree {
  const merged = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const both = isTree(value) && isTree(merged[key]);
    merged[key] = both ? merge(treeOf(merged[key]), treeOf(value)) : value;
  }
  return merged;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function treeOf(value: unknown): Tree {
  return isTree(value) ? value : {};
}

function whole(value: unknown): number | undefined {
  const number = Number(value);
  return value !== undefined && value !== null && Number.isInteger(number) ? number : undefined;
}

function port(value: unknown, key: string): number | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  const number = whole(value);
  if (number === undefined || number < 1 || number > 65_535) {
    throw new Error(`${key} is no port: ${String(value)}`);
  }
  return number;
}
