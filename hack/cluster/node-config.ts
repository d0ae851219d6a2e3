import { stringify } from "yaml";
import { addresses, maxPods, ports } from "./addresses.ts";
import type { KeyPair } from "./certificates.ts";

export interface KubeletOptions {
  authority: string;
  server: KeyPair;
  containerdSocket: string;
  resolvConf: string;
  podLogsDir: string;
}

/** KubeletConfiguration. Closed to anonymous callers; images stay, since most were imported by hand. */
export function kubeletConfig(options: KubeletOptions): string {
  return stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: addresses.node,
    port: ports.kubelet,
    healthzBindAddress: "127.0.0.1",
    tlsCertFile: options.server.cert,
    tlsPrivateKeyFile: options.server.key,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: options.authority },
    },
    authorization: { mode: "Webhook" },
    containerRuntimeEndpoint: `unix://${options.containerdSocket}`,
    cgroupDriver: "cgroupfs",
    // Kubernetes 1.34 still runs on version 1 when configured to; some machines have nothing else.
    failCgroupV1: false,
    failSwapOn: false,
    clusterDNS: [addresses.dns],
    clusterDomain: addresses.clusterDomain,
    resolvConf: options.resolvConf,
    podLogsDir: options.podLogsDir,
    // The collector reads the ingress's log from here: at 1,000 requests a second, for a minute and a half.
    containerLogMaxSize: "50Mi",
    containerLogMaxFiles: 3,
    maxPods,
    // Processes and threads of one pod: Kubernetes has no such limit in a pod's own settings.
    podPidsLimit: 1024,
    seccompDefault: true,
    serializeImagePulls: false,
    registryPullQPS: 0,
    eventRecordQPS: 0,
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    imageMaximumGCAge: "0s",
    evictionHard: { "memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    kubeReserved: { cpu: "50m", memory: "500Mi" },
    nodeStatusUpdateFrequency: "10s",
    // Tests kill each of the platform's processes dozens of times an hour: the default of five minutes is waited for by all of them.
    featureGates: { KubeletCrashLoopBackOffMax: true },
    crashLoopBackOff: { maxContainerRestartPeriod: "30s" },
    shutdownGracePeriod: "0s",
  });
}

/** KubeProxyConfiguration: nftables, which leaves the machine's conntrack limits alone. */
export function proxyConfig(kubeconfig: string): string {
  return stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    clientConnection: { kubeconfig },
    clusterCIDR: addresses.podCidr,
    detectLocalMode: "ClusterCIDR",
    hostnameOverride: addresses.nodeName,
    nodePortAddresses: [`${addresses.node}/32`],
    healthzBindAddress: "127.0.0.1:10256",
    metricsBindAddress: "127.0.0.1:10249",
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    nftables: { minSyncPeriod: "100ms", syncPeriod: "30s" },
  });
}
