import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { writeFileAtomic } from "../lib/files.ts";
import { runDir } from "../lib/paths.ts";
import { buildsRegistryHost, ports, registryHost } from "./addresses.ts";
import { builderSeccomp, builderSeccompProfile } from "./builds/seccomp.ts";
import { paths, resolvConf } from "./components.ts";
import { cniConfig, containerdConfig, registryConfig, registryHosts } from "./containerd.ts";
import { auditPolicy } from "./control-plane.ts";
import { kubeletConfig, proxyConfig } from "./node-config.ts";
import type { Pki } from "./pki.ts";
import { platformAccounts } from "./platform-accounts.ts";

/** containerd's configuration with the machine's paths. */
export function renderContainerd(sandboxImage: string): string {
  return containerdConfig({
    root: paths.containerd,
    state: join(runDir, "containerd"),
    socket: paths.containerdSocket,
    cniConfDir: paths.cniConfDir,
    registryConfigDir: paths.registryConfigDir,
    sandboxImage,
  });
}

/** Writes the configuration files that the cluster's components read. */
export async function writeConfigs(pki: Pki): Promise<void> {
  const authority = pki.authority.cert;
  for (const dir of [paths.cniConfDir, paths.volumes, paths.podLogs, paths.registry]) {
    await mkdir(dir, { recursive: true });
  }
  await mkdir(paths.etcd, { recursive: true, mode: 0o700 });
  await writeFileAtomic(join(paths.cniConfDir, "10-slipway.conflist"), cniConfig(join(runDir, "ipam")));
  for (const host of [registryHost, buildsRegistryHost]) {
    const dir = join(paths.registryConfigDir, host);
    await mkdir(dir, { recursive: true });
    await writeFileAtomic(join(dir, "hosts.toml"), registryHosts(authority, host));
  }
  const address = `0.0.0.0:${ports.registry}`;
  await writeFileAtomic(
    paths.registryConfig,
    registryConfig({ dir: paths.registry, ...pki.registry, address, level: "warn" }),
  );
  const profile = join(paths.kubelet, "seccomp", builderSeccompProfile);
  await mkdir(dirname(profile), { recursive: true });
  await writeFileAtomic(profile, JSON.stringify(builderSeccomp()), 0o644);
  await writeFileAtomic(paths.auditPolicy, stringify(auditPolicy(Object.keys(platformAccounts))));
  await writeFileAtomic(paths.proxyConfig, proxyConfig(pki.kubeconfigs.proxy));
  const kubelet = {
    authority,
    server: pki.kubelet,
    containerdSocket: paths.containerdSocket,
    resolvConf,
    podLogsDir: paths.podLogs,
  };
  await writeFileAtomic(paths.kubeletConfig, kubeletConfig(kubelet));
  // The first start of the runtime, without which no image can be imported, names no pause image yet.
  const current = await readFile(paths.containerdConfig, "utf8").catch(() => "");
  if (current === "") {
    await writeFileAtomic(paths.containerdConfig, renderContainerd("slipway.local/slipway/pause:none"));
  }
}
