import { join } from "node:path";
import { adminKubeconfig, confDir, pkiDir } from "../lib/paths.ts";
import { addresses, ports } from "./addresses.ts";
import { ensureAuthority, ensureCertificate, ensureSigningKey, type KeyPair } from "./certificates.ts";
import { writeKubeconfig } from "./kubeconfig.ts";

/** Certificates and kubeconfigs of the embedded cluster, as files. */
export interface Pki {
  authority: KeyPair;
  apiserver: KeyPair;
  etcd: KeyPair;
  etcdClient: KeyPair;
  /** Client certificate with which kube-apiserver calls the kubelet. */
  kubeletClient: KeyPair;
  kubelet: KeyPair;
  registry: KeyPair;
  git: KeyPair;
  /** Authority and client certificate of the aggregation layer; another authority, as Kubernetes requires. */
  frontProxyAuthority: KeyPair;
  frontProxy: KeyPair;
  serviceAccounts: KeyPair;
  /** Kubeconfig files by component. */
  kubeconfigs: Record<
    "admin" | "controllerManager" | "scheduler" | "kubelet" | "proxy" | "netpol" | "volumes",
    string
  >;
}

/** Makes what is missing of the cluster's certificates and kubeconfigs, and keeps the rest. */
export async function ensurePki(): Promise<Pki> {
  const authority = await ensureAuthority(pkiDir, "ca");
  const frontProxyAuthority = await ensureAuthority(pkiDir, "front-proxy-ca");
  const local = ["IP:127.0.0.1", "DNS:localhost"];
  const node = `IP:${addresses.node}`;
  const issue = (name: string, commonName: string, altNames?: string[], organizations?: string[]) =>
    ensureCertificate(pkiDir, name, authority, { commonName, altNames, organizations });

  const apiNames = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  apiNames.push(`kubernetes.default.svc.${addresses.clusterDomain}`);
  const apiAltNames = [
    ...local,
    node,
    `IP:${addresses.apiService}`,
    ...apiNames.map((name) => `DNS:${name}`),
  ];
  const nodeUser = `system:node:${addresses.nodeName}`;

  const server = `https://127.0.0.1:${ports.apiserver}`;
  const kubeconfig = async (path: string, name: string, user: KeyPair) => {
    await writeKubeconfig(path, name, server, authority.cert, user);
    return path;
  };
  const client = async (name: string, commonName: string, organizations?: string[]) =>
    kubeconfig(
      join(confDir, `${name}.kubeconfig`),
      "slipway",
      await issue(name, commonName, undefined, organizations),
    );

  const kubelet = await issue("kubelet", nodeUser, [`DNS:${addresses.nodeName}`, node], ["system:nodes"]);
  const admin = await issue("admin", "slipway-admin", undefined, ["system:masters"]);
  return {
    authority,
    apiserver: await issue("kube-apiserver", "kube-apiserver", apiAltNames),
    etcd: await issue("etcd", "etcd", local),
    etcdClient: await issue("etcd-client", "etcd-client"),
    kubeletClient: await issue("kubelet-client", "kube-apiserver-kubelet-client", undefined, [
      "system:masters",
    ]),
    kubelet,
    registry: await issue("registry", "registry", [...local, node]),
    git: await issue("git", "git", [...local, node]),
    frontProxyAuthority,
    frontProxy: await ensureCertificate(pkiDir, "front-proxy", frontProxyAuthority, {
      commonName: "front-proxy",
    }),
    serviceAccounts: await ensureSigningKey(pkiDir, "service-accounts"),
    kubeconfigs: {
      admin: await kubeconfig(adminKubeconfig, "slipway", admin),
      controllerManager: await client("controller-manager", "system:kube-controller-manager"),
      scheduler: await client("scheduler", "system:kube-scheduler"),
      kubelet: await kubeconfig(join(confDir, "kubelet.kubeconfig"), "slipway", kubelet),
      proxy: await client("kube-proxy", "system:kube-proxy"),
      netpol: await client("netpol", "slipway-netpol"),
      volumes: await client("volumes", "slipway-volumes"),
    },
  };
}
