import { createHash } from "node:crypto";

export interface RegistryLogin {
  username: string;
  token: string;
}

export interface PullSecret {
  /** `<project id>-pull-<hash of the content>`. */
  name: string;
  /** The value of `.dockerconfigjson`. */
  dockerConfigJson: string;
}

const DOCKER_HUB = "https://index.docker.io/v1/";

/** The registry that an image reference names, as a container runtime looks it up in a Docker configuration. */
export function registryOf(imageUrl: string): string {
  const [first = "", ...rest] = imageUrl.split("/");
  const isHost = rest.length > 0 && (first.includes(".") || first.includes(":") || first === "localhost");
  if (!isHost || first === "docker.io" || first === "index.docker.io") {
    return DOCKER_HUB;
  }
  return first;
}

/** The pull Secret of a private image. */
export function pullSecret(projectId: string, imageUrl: string, login: RegistryLogin): PullSecret {
  const auth = Buffer.from(`${login.username}:${login.token}`).toString("base64");
  const entry = { username: login.username, password: login.token, auth };
  const dockerConfigJson = JSON.stringify({ auths: { [registryOf(imageUrl)]: entry } });
  const hash = createHash("sha256")
    .update(JSON.stringify([projectId, dockerConfigJson]))
    .digest("hex");
  return { name: `${projectId}-pull-${hash.slice(0, 12)}`, dockerConfigJson };
}
