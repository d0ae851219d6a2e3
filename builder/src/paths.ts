import { join } from "node:path";
import type { Container } from "./task.ts";

/** Where the containers of a build pod share what they make, and where each finds its secrets. */
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
    /** What a step needs until it ends. */
    scratch: join(work, "scratch"),
    /** Bytes of the log that the steps so far have written. */
    logUsed: join(work, "log-used"),
    /** How a container has ended. */
    handOver: (container: Container) => join(work, `ended-${container}`),
  };
}

/** Secrets that a container may be given: files of one value each. */
export function secretPaths({ secrets }: Paths) {
  return {
    /** `username` and `password` of the Git server; no folder for a public repository. */
    git: join(secrets, "git"),
    /** Variables of the project, a file for each. */
    envs: join(secrets, "envs"),
    /** Variables that tools of the build shall have besides: mirrors of registries, which may hold a password. */
    tools: join(secrets, "tools"),
    /** `config.json` for registries, as Docker has it. */
    registry: join(secrets, "registry"),
  };
}
