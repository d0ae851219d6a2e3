import { existsSync } from "node:fs";
import { join } from "node:path";
import { answers, succeeds } from "../lib/exec.ts";
import { confDir, logDir, runDir, stateDir } from "../lib/paths.ts";
import { addresses, nodePortRange, ports } from "./addresses.ts";
import {
  apiserverArgs,
  controllerManagerArgs,
  controllerManagerLimits,
  etcdArgs,
  flags,
  schedulerArgs,
} from "./control-plane.ts";
import type { Pki } from "./pki.ts";
import type { Daemon } from "./processes.ts";

/** Paths that the cluster's components and the scripts share. */
export const paths = {
  containerdSocket: join(runDir, "containerd.sock"),
  containerdConfig: join(confDir, "containerd.toml"),
  cniConfDir: join(confDir, "cni"),
  registryConfigDir: join(confDir, "registries"),
  registryConfig: join(confDir, "registry.yaml"),
  auditPolicy: join(confDir, "audit-policy.yaml"),
  auditLog: join(logDir, "audit.log"),
  kubeletConfig: join(confDir, "kubelet.yaml"),
  proxyConfig: join(confDir, "kube-proxy.yaml"),
  etcd: join(stateDir, "etcd"),
  containerd: join(stateDir, "containerd"),
  kubelet: join(stateDir, "kubelet"),
  podLogs: join(stateDir, "pod-logs"),
  registry: join(stateDir, "registry"),
  buildsRegistry: join(stateDir, "registry-builds"),
  buildsRegistryConfig: join(confDir, "registry-builds.yaml"),
  git: join(stateDir, "git"),
  volumes: join(stateDir, "volumes"),
} as const;

/** Where a name server for pods is found that is no loopback address of this machine. */
export const resolvConf = existsSync("/run/systemd/resolve/resolv.conf")
  ? "/run/systemd/resolve/resolv.conf"
  : "/etc/resolv.conf";

/** Files of certificates that a component reads at its start. */
const files = (...pairs: { cert: string; key: string }[]) => pairs.flatMap((pair) => [pair.cert, pair.key]);

export interface Binaries {
  kubernetes: string;
  registry: string;
  netpol: string;
  volumes: string;
}

/** containerd, which nothing else of the cluster needs to run before. */
export function containerd(): Daemon {
  return {
    name: "containerd",
    argv: ["/usr/bin/containerd", "--config", paths.containerdConfig],
    reads: [paths.containerdConfig],
    healthy: () => succeeds("ctr", ["--address", paths.containerdSocket, "version"]),
  };
}

export function registry(binaries: Binaries, pki: Pki): Daemon {
  return {
    name: "registry",
    argv: [binaries.registry, "serve", paths.registryConfig],
    reads: [paths.registryConfig, ...files(pki.registry)],
    healthy: () => answers(`https://127.0.0.1:${ports.registry}/v2/`),
  };
}

/** etcd and the control plane, in the order in which they start. */
export function controlPlane(binaries: Binaries, pki: Pki): Daemon[] {
  const authority = pki.authority.cert;
  const healthz = (port: number) => () => answers(`https://127.0.0.1:${port}/healthz`);
  const etcd: Daemon = {
    name: "etcd",
    argv: [
      binaries.kubernetes,
      ...etcdArgs({
        dataDir: paths.etcd,
        clientPort: ports.etcdClient,
        peerPort: ports.etcdPeer,
        authority,
        server: pki.etcd,
      }),
    ],
    reads: files(pki.etcd),
    healthy: () => {
      const client = ["--cacert", authority, "--cert", pki.etcdClient.cert, "--key", pki.etcdClient.key];
      return succeeds("curl", [
        "-sf",
        "--max-time",
        "2",
        ...client,
        `https://127.0.0.1:${ports.etcdClient}/health`,
      ]);
    },
  };
  const apiserver: Daemon = {
    name: "kube-apiserver",
    argv: [
      binaries.kubernetes,
      ...apiserverArgs({
        port: ports.apiserver,
        bindAddress: "0.0.0.0",
        etcdPort: ports.etcdClient,
        authority,
        server: pki.apiserver,
        etcdClient: pki.etcdClient,
        serviceAccountKeys: pki.serviceAccounts,
        serviceCidr: addresses.serviceCidr,
        auditPolicy: paths.auditPolicy,
        auditLog: paths.auditLog,
        extra: {
          "advertise-address": addresses.node,
          "service-node-port-range": nodePortRange,
          "enable-admission-plugins": "NodeRestriction",
          "kubelet-certificate-authority": authority,
          "kubelet-client-certificate": pki.kubeletClient.cert,
          "kubelet-client-key": pki.kubeletClient.key,
          "kubelet-preferred-address-types": "InternalIP",
          "requestheader-client-ca-file": pki.frontProxyAuthority.cert,
          "requestheader-allowed-names": "front-proxy",
          "requestheader-username-headers": "X-Remote-User",
          "requestheader-group-headers": "X-Remote-Group",
          "requestheader-extra-headers-prefix": "X-Remote-Extra-",
          "proxy-client-cert-file": pki.frontProxy.cert,
          "proxy-client-key-file": pki.frontProxy.key,
          "enable-aggregator-routing": true,
        },
      }),
    ],
    reads: [paths.auditPolicy, ...files(pki.apiserver, pki.etcdClient, pki.kubeletClient, pki.frontProxy)],
    healthy: () => answers(`https://127.0.0.1:${ports.apiserver}/readyz`),
  };
  const controllerManager: Daemon = {
    name: "kube-controller-manager",
    argv: [
      binaries.kubernetes,
      ...controllerManagerArgs({
        kubeconfig: pki.kubeconfigs.controllerManager,
        authority: pki.authority,
        serviceAccountKey: pki.serviceAccounts.key,
        extra: controllerManagerLimits,
      }),
    ],
    reads: [pki.kubeconfigs.controllerManager],
    healthy: healthz(10257),
  };
  const scheduler: Daemon = {
    name: "kube-scheduler",
    argv: [binaries.kubernetes, ...schedulerArgs(pki.kubeconfigs.scheduler)],
    reads: [pki.kubeconfigs.scheduler],
    healthy: healthz(10259),
  };
  return [etcd, apiserver, controllerManager, scheduler];
}

/** The node's agents. */
export function nodeAgents(binaries: Binaries, pki: Pki): Daemon[] {
  const kubelet: Daemon = {
    name: "kubelet",
    argv: [
      binaries.kubernetes,
      "kubelet",
      ...flags({
        config: paths.kubeletConfig,
        kubeconfig: pki.kubeconfigs.kubelet,
        "root-dir": paths.kubelet,
        "hostname-override": addresses.nodeName,
        "node-ip": addresses.node,
        // Where cAdvisor finds the sandboxes of pods, of which it measures the network.
        containerd: paths.containerdSocket,
      }),
    ],
    reads: [paths.kubeletConfig, pki.kubeconfigs.kubelet, ...files(pki.kubelet)],
    healthy: () => answers("http://127.0.0.1:10248/healthz"),
  };
  const proxy: Daemon = {
    name: "kube-proxy",
    argv: [binaries.kubernetes, "kube-proxy", ...flags({ config: paths.proxyConfig })],
    reads: [paths.proxyConfig, pki.kubeconfigs.proxy],
    healthy: () => answers("http://127.0.0.1:10256/healthz"),
  };
  return [kubelet, proxy];
}

/** The NetworkPolicy enforcer. It starts before the kubelet does, so that no pod runs without its policies. */
export function netpol(binaries: Binaries, pki: Pki): Daemon {
  return {
    name: "netpol",
    argv: [
      binaries.netpol,
      ...flags({
        kubeconfig: pki.kubeconfigs.netpol,
        "pod-cidr": addresses.podCidr,
        "node-ip": addresses.node,
        "node-ports": nodePortRange,
        bridge: addresses.bridge,
        health: "127.0.0.1:10290",
      }),
    ],
    reads: [pki.kubeconfigs.netpol],
    healthy: () => answers("http://127.0.0.1:10290/healthz"),
  };
}

/** Keeps the volumes. It mounts them when it starts, which is before the kubelet does. */
export function volumes(binaries: Binaries, pki: Pki): Daemon {
  return {
    name: "volumes",
    argv: [
      binaries.volumes,
      ...flags({ kubeconfig: pki.kubeconfigs.volumes, folder: paths.volumes, health: "127.0.0.1:10291" }),
    ],
    reads: [pki.kubeconfigs.volumes],
    healthy: () => answers("http://127.0.0.1:10291/healthz"),
  };
}
