import type { ProjectSpec } from "@slipway/crds";
import type { EnvironmentVariable } from "./env-secrets.ts";
import type { RegistryLogin } from "./pull-secret.ts";

/** How a private image's registry is logged in to. */
export type ImageLogin =
  | ({ kind: "username_password" } & RegistryLogin)
  /** Needs a token that is renewed; see the failure it meets. */
  | { kind: "aws" };

/** A body that kept every rule: what the project should be, with what must not stand in a spec apart. */
export interface CreationRequest {
  /** Without `envsFrom` and `image.pullSecretRef`, which name Secrets that are yet to be made. */
  spec: ProjectSpec;
  envs: readonly EnvironmentVariable[];
  login: ImageLogin | undefined;
}
