import type { KeyPair } from "./certificates.ts";

/** A command line: the component's name is its first word for the multi-call binary. */
export type Argv = string[];

/** Renders `--name=value` flags. */
export function flags(values: Record<string, string | number | boolean>): Argv {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

export interface EtcdOptions {
  dataDir: string;
  clientPort: number;
  peerPort: number;
  /** Skips fsync: for tests, whose data may be lost. */
  unsafe?: boolean;
  authority: string;
  server: KeyPair;
}

/** etcd with one member, on loopback, which accepts clients with a certificate of the authority only. */
export function etcdArgs(options: EtcdOptions): Argv {
  const client = `https://127.0.0.1:${options.clientPort}`;
  const peer = `http://127.0.0.1:${options.peerPort}`;
  const args = flags({
    name: "slipway",
    "data-dir": options.dataDir,
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `slipway=${peer}`,
    "client-cert-auth": true,
    "trusted-ca-file": options.authority,
    "cert-file": options.server.cert,
    "key-file": options.server.key,
    "auto-compaction-mode": "periodic",
    "auto-compaction-retention": "5m",
    "quota-backend-bytes": 4 * 1024 ** 3,
    "log-level": "warn",
  });
  if (options.unsafe) {
    args.push("--unsafe-no-fsync");
  }
  return ["etcd", ...args];
}

export interface ApiserverOptions {
  port: number;
  bindAddress: string;
  etcdPort: number;
  authority: string;
  server: KeyPair;
  etcdClient: KeyPair;
  serviceAccountKeys: KeyPair;
  serviceCidr: string;
  auditPolicy: string;
  auditLog: string;
  /** More flags; they win over the ones here. */
  extra?: Record<string, string | number | boolean>;
}

/** kube-apiserver with RBAC, service account tokens and an audit log; defaults for the rest. */
export function apiserverArgs(options: ApiserverOptions): Argv {
  return [
    "kube-apiserver",
    ...flags({
      "bind-address": options.bindAddress,
      "secure-port": options.port,
      "etcd-servers": `https://127.0.0.1:${options.etcdPort}`,
      "etcd-cafile": options.authority,
      "etcd-certfile": options.etcdClient.cert,
      "etcd-keyfile": options.etcdClient.key,
      "client-ca-file": options.authority,
      "tls-cert-file": options.server.cert,
      "tls-private-key-file": options.server.key,
      "service-account-issuer": "https://kubernetes.default.svc",
      "service-account-key-file": options.serviceAccountKeys.cert,
      "service-account-signing-key-file": options.serviceAccountKeys.key,
      "service-cluster-ip-range": options.serviceCidr,
      "authorization-mode": "Node,RBAC",
      "anonymous-auth": true,
      "audit-policy-file": options.auditPolicy,
      "audit-log-path": options.auditLog,
      "audit-log-maxsize": 100,
      "audit-log-maxbackup": 3,
      profiling: false,
      ...options.extra,
    }),
  ];
}

/**
 * Room for many minutely jobs: by default each controller sends 20 requests a second, and a Job takes the CronJob controller
 * two, so that of 1,000 Jobs that are due at one second the last is made more than a minute later. With these, two cores are the limit.
 */
export const controllerManagerLimits = {
  "kube-api-qps": 150,
  "kube-api-burst": 300,
  "concurrent-cron-job-syncs": 10,
  "concurrent-job-syncs": 10,
} as const;

export interface ControllerManagerOptions {
  kubeconfig: string;
  authority: KeyPair;
  serviceAccountKey: string;
  /** More flags; they win over the ones here. */
  extra?: Record<string, string | number | boolean>;
}

/** kube-controller-manager, alone, on loopback, with an account of its own for each controller. */
export function controllerManagerArgs(options: ControllerManagerOptions): Argv {
  return [
    "kube-controller-manager",
    ...flags({
      kubeconfig: options.kubeconfig,
      "authentication-kubeconfig": options.kubeconfig,
      "authorization-kubeconfig": options.kubeconfig,
      "bind-address": "127.0.0.1",
      "root-ca-file": options.authority.cert,
      "service-account-private-key-file": options.serviceAccountKey,
      "use-service-account-credentials": true,
      "cluster-signing-cert-file": options.authority.cert,
      "cluster-signing-key-file": options.authority.key,
      "leader-elect": false,
      profiling: false,
      ...options.extra,
    }),
  ];
}

/** kube-scheduler, alone, on loopback; `extra` flags win over the ones here. */
export function schedulerArgs(
  kubeconfig: string,
  extra: Record<string, string | number | boolean> = {},
): Argv {
  return [
    "kube-scheduler",
    ...flags({
      kubeconfig,
      "authentication-kubeconfig": kubeconfig,
      "authorization-kubeconfig": kubeconfig,
      "bind-address": "127.0.0.1",
      "leader-elect": false,
      profiling: false,
      ...extra,
    }),
  ];
}

/** Verbs of requests that write nothing. */
export const readVerbs: readonly string[] = ["get", "list", "watch"];

/**
 * Metadata of every request that may write or run a command, and of reads of the accounts that are named: reads of all others would
 * drown them, and bodies contain Secrets. One line a request, when it has been answered; two of a watch.
 * @param readers users whose reads are logged, by name
 */
export const auditPolicy = (readers: readonly string[]) => ({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    // Over WebSocket a command in a container is a `get`.
    { level: "Metadata", resources: [{ group: "", resources: ["pods/exec"] }] },
    { level: "Metadata", users: readers, verbs: readVerbs },
    { level: "None", verbs: readVerbs },
    // Written all the time by every cluster; nothing of it is Slipway's.
    {
      level: "None",
      users: ["system:apiserver", "system:kube-scheduler", "system:kube-controller-manager"],
      resources: [{ group: "coordination.k8s.io" }],
    },
    { level: "None", userGroups: ["system:nodes"], resources: [{ group: "coordination.k8s.io" }] },
    { level: "Metadata" },
  ],
});
