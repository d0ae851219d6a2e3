import { join } from "node:path";
import type { Container } from "./task.ts";

/** The folders of a build pod: shared between its containers, and of each container's secrets. */
export interface Paths {
  work: string;
  secrets: string;
  cache: string;
}

/** As the operator mounts them. */
export const podPaths: Paths = { work: "/workspace", secrets: "/secrets", cache: "/cache" };

/** Files and folders below `work`. */
export function workPaths({ work }: Paths) {
  return {
    /** The checkout, without `.git`. */
    source: join(work, "source"),
    /** Dockerfile, its ignore file and plan.json. */
    plan: join(work, "plan"),
    planFile: join(work, "plan", "plan.json"),
    /** The image, as an OCI layout. */
    image: join(work, "image"),
    /** Temporary files of a step. */
    scratch: join(work, "scratch"),
    /** Bytes of the log that the steps so far have written. */
    logUsed: join(work, "log-used"),
    /** Reports how a container has ended. */
    completion: (container: Container) => join(work, `ended-${container}`),
  };
}

/** Secrets of a container: files of one value each. */
export function secretPaths({ secrets }: Paths) {
  return {
    /** `username` and `password` of the Git server; no folder for a public repository. */
    git: join(secrets, "git"),
    /** Variables of the project, a file for each. */
    envs: join(secrets, "envs"),
    /** Variables for tools of the build, such as mirrors of package registries, which may contain a password. */
    tools: join(secrets, "tools"),
    /** Docker's `config.json`. */
    registry: join(secrets, "registry"),
  };
}
