/** The parts of a container that are the same for every type of project. */

import type { Workload } from "./app.ts";

/** Which image runs, under the name by which its container is found. */
export function imageFields({ image }: Workload) {
  return {
    name: "app",
    image,
    // A tag may lead elsewhere by now, and an image that a node keeps for one organization is not another's to run: asking
    // the registry each time answers both. A digest is its own proof.
    imagePullPolicy: image.includes("@sha256:") ? "IfNotPresent" : "Always",
  };
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
