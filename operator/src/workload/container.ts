/** The parts of a container that are the same for every type of project. */

import { BUILDS_PULL_SECRET } from "@slipway/crds";
import type { Workload } from "./app.ts";

/** Which image runs, under the name by which its container is found. */
export function imageFields(workload: Workload) {
  const { image } = workload;
  return { name: "app", image, imagePullPolicy: isOwnBuild(workload) ? "IfNotPresent" : "Always" };
}

/**
 * A tag may have moved by now, and an image that a node has for one organization must not run for another, by digest neither:
 * the registry is queried each time, with the project's own credentials. What the platform built for the organization needs no
 * query, and starts while the platform's registry is unavailable: nobody else may name it (`refuseForeignBuild`).
 */
function isOwnBuild({ image, organizationId, pullSecret }: Workload): boolean {
  const repository = image.slice(image.indexOf("/") + 1);
  const isOwn = pullSecret === BUILDS_PULL_SECRET && repository.startsWith(`${organizationId}/`);
  return isOwn && image.includes("@sha256:");
}

/** Values from Secrets stay literal: Kubernetes expands $(NAME) in `env` only. */
export function environmentFields({ envSecrets }: Pick<Workload, "envSecrets">) {
  return envSecrets.length > 0 ? { envFrom: envSecrets.map((name) => ({ secretRef: { name } })) } : {};
}

/** What the container may do, and where its volume is. */
export function confinementFields({ volume }: Workload) {
  return {
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: {
        drop: ["ALL"],
        // What images that start as root need to own their files, bind port 80 and become another user.
        add: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"],
      },
    },
    ...(volume ? { volumeMounts: [{ name: "data", mountPath: volume.mountPath }] } : {}),
  };
}
