/** A registry in kind's cluster: what tenants run is pulled each time, so an image in a node's runtime is not enough. */
import { readFile } from "node:fs/promises";
import { stringify } from "yaml";
import type { Registry } from "../../images/index.ts";
import { run } from "../../lib/exec.ts";
import { pkiDir } from "../../lib/paths.ts";
import { ensureAuthority, ensureCertificate } from "../certificates.ts";
import { registryConfig, registryHosts } from "../containerd.ts";
import { applyManifests, type Kubectl } from "../kubectl.ts";
import type { Engine } from "./engine.ts";

/** Port of this machine's loopback that leads to it. */
export const registryPort = 32_700;

/** Host part of the references that nodes pull; no name server knows it. */
export const kindRegistryHost = "slipway.local";

const folder = "/etc/registry";

/** Certificate and configuration, as the Secret that its pod mounts. @returns the authority's certificate, as a file */
export async function ensureRegistrySecret(
  kubectl: Kubectl,
  nodeName: string,
  log: string,
): Promise<Registry> {
  const authority = await ensureAuthority(pkiDir, "ca");
  const pair = await ensureCertificate(pkiDir, "kind-registry", authority, {
    commonName: "registry",
    altNames: ["IP:127.0.0.1", `DNS:${nodeName}`],
  });
  const config = registryConfig({
    dir: "/var/lib/registry",
    cert: `${folder}/tls.crt`,
    key: `${folder}/tls.key`,
    address: ":5000",
    level: "warn",
  });
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "registry", namespace: "kube-system" },
    stringData: {
      "config.yaml": config,
      "tls.crt": await readFile(pair.cert, "utf8"),
      "tls.key": await readFile(pair.key, "utf8"),
    },
  };
  await applyManifests(kubectl, stringify(secret), log);
  return { host: `127.0.0.1:${registryPort}`, caFile: authority.cert };
}

/** Has every node pull references of `kindRegistryHost` from the registry on this node. */
export async function configureNodes(
  { name, env }: Engine,
  nodes: readonly string[],
  registryNode: string,
  caFile: string,
): Promise<void> {
  const place = `/etc/containerd/certs.d/${kindRegistryHost}`;
  const hosts = registryHosts(`${place}/ca.crt`, `${registryNode}:5000`);
  const files = { "hosts.toml": hosts, "ca.crt": await readFile(caFile, "utf8") };
  for (const node of nodes) {
    for (const [file, input] of Object.entries(files)) {
      const write = `mkdir -p ${place} && cat >${place}/${file}`;
      await run(name, ["exec", "--interactive", node, "/bin/sh", "-c", write], { env, input });
    }
  }
}
