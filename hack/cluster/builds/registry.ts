import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { registryIssuer, registryKeySet, registryService } from "@slipway/crds";
import { run } from "../../lib/exec.ts";
import { writeFileAtomic } from "../../lib/files.ts";
import type { KeyPair } from "../certificates.ts";
import { registryConfig } from "../containerd.ts";
import type { Daemon } from "../processes.ts";

/** The registry of builds: where it keeps what, and how it is reached. */
export interface BuildsRegistry {
  /** Folder of the images. */
  data: string;
  /** File for its configuration. */
  config: string;
  /** Folder of the key that signs its tokens, and of its public part. */
  keys: string;
  /** `address:port` that it listens on. */
  host: string;
  tls: KeyPair;
  /** Where clients ask for a token with a name and a password. */
  realm: string;
}

/** File of the PEM private key that signs tokens; made once. */
export async function ensureRegistryKey(folder: string): Promise<string> {
  const file = join(folder, "builds-registry-token.key");
  if (!existsSync(file)) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await writeFile(file, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  }
  return file;
}

/** Makes the key and the configuration, and returns how the registry is run. */
export async function prepareRegistry(registry: BuildsRegistry, binary: string): Promise<Daemon> {
  const keySet = join(registry.keys, "builds-registry-token.jwks");
  const key = await readFile(await ensureRegistryKey(registry.keys), "utf8");
  await writeFileAtomic(keySet, `${JSON.stringify(registryKeySet(key))}\n`, 0o644);
  await mkdir(registry.data, { recursive: true });
  await writeFileAtomic(registry.config, buildsRegistryConfig(registry, keySet));
  return {
    name: "registry-builds",
    // Unless disabled, it sends traces to a collector that it expects on this machine, and logs that there is none.
    argv: ["/usr/bin/env", "OTEL_TRACES_EXPORTER=none", binary, "serve", registry.config],
    reads: [registry.config, keySet, registry.tls.cert, registry.tls.key],
    healthy: async () => (await statusOf(`https://${registry.host}/v2/`)) === "401",
  };
}

/** Configuration of the registry of builds: that of the stack's other one, and tokens. */
export function buildsRegistryConfig(registry: BuildsRegistry, keySet: string): string {
  const { data, tls, host, realm } = registry;
  // Every client's first request is one without a token, which it warns of.
  return `${registryConfig({ dir: data, cert: tls.cert, key: tls.key, address: host, level: "error" })}auth:
  token:
    realm: ${JSON.stringify(realm)}
    service: ${registryService}
    issuer: ${registryIssuer}
    jwks: ${JSON.stringify(keySet)}
    signingalgorithms: [ES256]
`;
}

const statusOf = (url: string): Promise<string> =>
  run("curl", ["-sk", "--max-time", "2", "-o", "/dev/null", "-w", "%{http_code}", url]).catch(() => "");
