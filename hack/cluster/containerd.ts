import { addresses, registryHost } from "./addresses.ts";

/** What the nodes' runtime needs to know of the machine. */
export interface ContainerdOptions {
  /** Images and snapshots; a path on a real disk. */
  root: string;
  /** Run-time state; on a tmpfs. */
  state: string;
  socket: string;
  cniConfDir: string;
  /** Folder with one folder of `hosts.toml` per registry; read at each pull. */
  registryConfigDir: string;
  sandboxImage: string;
}

const quote = (text: string) => JSON.stringify(text);

/** Configuration of containerd (version 2 of its format, as Debian's 1.6 reads it). */
export function containerdConfig(options: ContainerdOptions): string {
  return `version = 2
root = ${quote(options.root)}
state = ${quote(options.state)}
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
address = ${quote(options.socket)}

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = ${quote(options.sandboxImage)}
# A machine without CAP_SYS_RESOURCE may not lower a process's OOM score.
restrict_oom_score_adj = true
enable_unprivileged_ports = true
enable_unprivileged_icmp = true
max_concurrent_downloads = 5

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = ${quote(options.cniConfDir)}

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = ${quote(options.registryConfigDir)}

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
`;
}

/** `hosts.toml` of a registry of the stack: TLS by the stack's authority. */
export function registryHosts(authority: string, host: string = registryHost): string {
  return `server = "https://${host}"

[host."https://${host}"]
capabilities = ["pull", "resolve"]
ca = ${quote(authority)}
`;
}

/** CNI chain of the pod network: a bridge whose own address is the node's, host ports by portmap. */
export function cniConfig(ipamDir: string): string {
  const config = {
    cniVersion: "1.0.0",
    name: "slipway",
    plugins: [
      {
        type: "bridge",
        bridge: addresses.bridge,
        isGateway: true,
        ipMasq: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: ipamDir,
          ranges: [[{ subnet: addresses.podCidr, gateway: addresses.node }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true }, snat: true },
    ],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

export interface RegistryOptions {
  /** Folder of the data. */
  dir: string;
  cert: string;
  key: string;
  /** `address:port` that it listens on. */
  address: string;
  level: "warn" | "error";
}

/** Configuration of a registry: TLS, deletion allowed. */
export function registryConfig({ dir, cert, key, address, level }: RegistryOptions): string {
  return `version: 0.1
log:
  level: ${level}
  accesslog:
    disabled: true
storage:
  filesystem:
    rootdirectory: ${quote(dir)}
  delete:
    enabled: true
http:
  addr: "${address}"
  tls:
    certificate: ${quote(cert)}
    key: ${quote(key)}
`;
}
