import type { BuiltImage, Registry } from "../images/index.ts";
import type { Builds, BuildsRegistryAccess } from "./builds/index.ts";
import type { Kubectl } from "./kubectl.ts";

/** A cluster that Slipway can be installed on, whatever created it. */
export interface Cluster {
  kind: "embedded" | "kind" | "context";
  kubeconfig: string;
  kubectl: Kubectl;
  /** Path of helm. */
  helm: string;
  /** Registry that the nodes pull from: as this machine pushes to it, and its host as the nodes name it. */
  registry: { push: Registry; pull: string } | undefined;
  /** Imports an image into the nodes' runtimes; undefined where only a registry can. */
  importImage: ((image: BuiltImage) => Promise<void>) | undefined;
  /** Base addresses of the API and of the ingress from this machine, where the scripts arranged for them. */
  apiUrl: string | undefined;
  ingressUrl: string | undefined;
  /** Addresses as CIDRs; undefined where these scripts did not choose them. */
  networks:
    | {
        pods: string;
        /** Where pods find kube-apiserver: its Service's address and its own. */
        apiserver: string[];
        /** Where pods find the nodes' kubelets. */
        nodes: string[];
        /** What tenants must not reach: pods, Services, nodes, metadata. */
        denied: string[];
      }
    | undefined;
  /** Whether this machine can open connections to pods' addresses. */
  podsReachable: boolean;
  /** Where this machine reaches node ports, and with them databases; undefined where these scripts do not know. */
  databaseHost: string | undefined;
  /**
   * Folders of the nodes: the kubelet's of pods' logs, and one for the collector's buffer. Undefined where the ingress is not
   * of these scripts, and what it logs is unknown.
   */
  collector: { podLogs: string; stateFolder: string } | undefined;
  /** What builds need beside the platform, and how it is started; undefined where these scripts do not provide it. */
  builds:
    | {
        registry: BuildsRegistryAccess;
        /** Where the Git server is or will be. */
        git: { host: string; caFile: string };
        ensure: () => Promise<Builds>;
      }
    | undefined;
  /** Waits for what nothing else waits for: slow parts of the cluster that Slipway starts without. */
  waitForSlowParts: () => Promise<void>;
}
