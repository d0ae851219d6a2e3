import { UserError } from "../lib/steps.ts";

/** Images of kind's nodes by version of Kubernetes, by the digests with which public repositories pin them for kind v0.31.0 to v0.33.0. */
const nodeImages = {
  "1.32": "kindest/node:v1.32.11@sha256:5fc52d52a7b9574015299724bd68f183702956aa4a2116ae75a63cb574b35af8",
  "1.33": "kindest/node:v1.33.12@sha256:3f5c8443c620245e4d355cfe09e96a91ead32ceaa569d3f1ca9edf0cb2fe2ff4",
  "1.34": "kindest/node:v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d",
  "1.35": "kindest/node:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0",
} as const;

export type KubernetesVersion = keyof typeof nodeImages;

/** Versions of Kubernetes that kind's node can have, the oldest first. */
export const kubernetesVersions = Object.keys(nodeImages) as KubernetesVersion[];

/** The version of kind's node unless another is chosen: that of the embedded cluster. */
export const defaultKubernetes: KubernetesVersion = "1.34";

export const isKubernetesVersion = (version: string): version is KubernetesVersion => version in nodeImages;

/** The image of a node with this version. */
export const nodeImage = (version: KubernetesVersion): string => nodeImages[version];

/**
 * Checks that a cluster that runs already has the version that is asked for: kind does not upgrade one.
 * @param answer of the kube-apiserver's `/version`
 * @throws UserError when it has another
 */
export function checkRunningVersion(answer: string, wanted: KubernetesVersion | undefined): void {
  const { major, minor } = JSON.parse(answer) as { major: string; minor: string };
  const running = `${major}.${minor.replace(/\D+$/, "")}`;
  if (wanted !== undefined && wanted !== running) {
    throw new UserError(
      `the kind cluster runs Kubernetes ${running}, not ${wanted}: remove it with hack/down.sh --purge`,
    );
  }
}

/**
 * Checks that a cluster that runs already has as many nodes as are asked for: kind adds none.
 * @throws UserError when it has more or fewer
 */
export function checkRunningNodes(running: number, wanted: number | undefined): void {
  if (wanted !== undefined && wanted !== running) {
    throw new UserError(
      `the kind cluster has ${running} ${running === 1 ? "node" : "nodes"}, not ${wanted}: remove it with hack/down.sh --purge`,
    );
  }
}
