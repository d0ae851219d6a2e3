import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { parse } from "yaml";

/** How requests reach an apiserver and what authenticates them. */
export interface ApiserverAccess {
  /** Base address, without a trailing slash. */
  server: string;
  headers: Record<string, string>;
  tls: { ca?: string | Buffer; cert?: string | Buffer; key?: string | Buffer };
}

interface Entry {
  name: string;
  cluster?: Record<string, unknown>;
  user?: Record<string, unknown>;
  context?: { cluster: string; user: string };
}

const PLAIN_CLUSTER = ["server", "certificate-authority", "certificate-authority-data"];
const PLAIN_USER = [
  "client-certificate",
  "client-key",
  "client-certificate-data",
  "client-key-data",
  "token",
];

/**
 * Access by a kubeconfig's current context. Certificates and tokens are read here, in a few milliseconds; a kubeconfig with
 * anything else, such as a plugin for credentials, is left to the Kubernetes client, which takes most of a second to load.
 * @throws Error when the kubeconfig cannot be read or names no cluster
 */
export async function apiserverAccess(kubeconfig: string): Promise<ApiserverAccess> {
  const config = parse(await readFile(kubeconfig, "utf8")) as Record<string, unknown>;
  const entry = (list: string, name: unknown) =>
    ((config[list] ?? []) as Entry[]).find((one) => one.name === name);
  const context = entry("contexts", config["current-context"])?.context;
  const cluster = entry("clusters", context?.cluster)?.cluster;
  const user = entry("users", context?.user)?.user ?? {};
  if (!cluster) {
    throw new Error(`${kubeconfig} has no cluster in its current context`);
  }
  if (!hasOnly(cluster, PLAIN_CLUSTER) || !hasOnly(user, PLAIN_USER)) {
    return accessByClient(kubeconfig);
  }
  const value = async (from: Record<string, unknown>, key: string): Promise<Buffer | undefined> => {
    const data = from[`${key}-data`];
    if (typeof data === "string") {
      return Buffer.from(data, "base64");
    }
    const file = from[key];
    return typeof file === "string" ? readFile(resolve(dirname(kubeconfig), file)) : undefined;
  };
  const token = user.token;
  return {
    server: String(cluster.server).replace(/\/+$/, ""),
    headers: typeof token === "string" ? { authorization: `Bearer ${token}` } : {},
    tls: {
      ca: await value(cluster, "certificate-authority"),
      cert: await value(user, "client-certificate"),
      key: await value(user, "client-key"),
    },
  };
}

function hasOnly(object: object, keys: readonly string[]): boolean {
  return Object.keys(object).every((key) => keys.includes(key));
}

async function accessByClient(kubeconfig: string): Promise<ApiserverAccess> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const server = config.getCurrentCluster()?.server.replace(/\/+$/, "");
  if (server === undefined) {
    throw new Error(`${kubeconfig} has no cluster in its current context`);
  }
  const options: Parameters<typeof config.applyToHTTPSOptions>[0] = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(options.headers ?? {})) {
    headers[name] = String(text);
  }
  const { ca, cert, key } = options;
  return { server, headers, tls: { ca, cert, key } as ApiserverAccess["tls"] };
}
