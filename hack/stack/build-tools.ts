import { readFile } from "node:fs/promises";
import { run } from "../lib/exec.ts";

/** How this machine's own clients of package registries are configured: builds on it use the same. */

const PUBLIC_NPM = "https://registry.npmjs.org";

/** Variables that are handed on as they are. None names a file: those of this machine are not in a build. */
const HANDED_ON = [
  "PIP_INDEX_URL",
  "PIP_EXTRA_INDEX_URL",
  "PIP_TRUSTED_HOST",
  "PIP_DEFAULT_TIMEOUT",
  "UV_INDEX_URL",
  "UV_DEFAULT_INDEX",
  "GOPROXY",
  "GOSUMDB",
  "GONOSUMDB",
  "GOPRIVATE",
] as const;

export interface MachineClients {
  env: Readonly<Record<string, string | undefined>>;
  /** As `npm config get registry` and `pip config get global.index-url` answer; empty when they do not. */
  npmRegistry: string;
  pipIndex: string;
}

/** Variables for the tools of builds. Pure. */
export function toolVariables({ env, npmRegistry, pipIndex }: MachineClients): Record<string, string> {
  const given = HANDED_ON.flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  return {
    ...(/^https?:/.test(npmRegistry) && npmRegistry.replace(/\/$/, "") !== PUBLIC_NPM
      ? { NPM_CONFIG_REGISTRY: npmRegistry }
      : {}),
    ...(/^https?:/.test(pipIndex) ? { PIP_INDEX_URL: pipIndex, UV_DEFAULT_INDEX: pipIndex } : {}),
    ...Object.fromEntries(given),
  };
}

/** Reads the settings of this machine's clients. */
export async function buildTools(env = process.env): Promise<Record<string, string>> {
  const [npmRegistry, pipIndex] = await Promise.all([
    answer("npm", ["config", "get", "registry"]),
    answer("pip3", ["config", "get", "global.index-url"]),
  ]);
  return toolVariables({ env, npmRegistry, pipIndex });
}

/** The authorities that this machine's clients are configured to trust, as PEM; empty without such a setting. */
export async function buildAuthorities(env = process.env): Promise<string> {
  const file = env.SSL_CERT_FILE ?? env.NODE_EXTRA_CA_CERTS;
  if (!file) {
    return "";
  }
  const text = await readFile(file, "utf8").catch(() => "");
  // Comments between the certificates may name anything.
  return (text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).join("\n");
}

const answer = async (program: string, args: string[]): Promise<string> =>
  (await run(program, args).catch(() => "")).trim();
