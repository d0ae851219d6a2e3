import { createHash } from "node:crypto";
import {
  type EnvironmentVariable,
  type EnvSource,
  envSecretName,
  hasReferenceSyntax,
  type ImageAuthentication,
  referencesIn,
  referenceText,
} from "@slipway/crds";
import type { Usage } from "@slipway/ledger";
import type { FieldError } from "../../errors/failure.ts";
import type { BoundReferences } from "../../references/bind.ts";

/** The Secrets of a creation: environment variables, and credentials of the image's registry. Pure. */

/** The content of one immutable Secret with environment variables. */
export interface EnvShard {
  /** `<project id>-env-<hash of the content>`. */
  name: string;
  /** Variables by name, in plain text. */
  stringData: Record<string, string>;
  /** Where each stood in the whole list, in the order of {@link byName}: Kubernetes does not keep an order. */
  positions: number[];
}

/** The order of names in a Secret. */
export const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

/** Bytes of names and values in one Secret: below Kubernetes' 1 MiB, and etcd's request limit. */
const SHARD_BYTES = 900 * 1024;

const HASH_LENGTH = 12;

/**
 * Spreads variables over as few Secrets as possible. The order of the variables does not matter: the same set has
 * the same names, so a retry finds what it wrote before. No variables, no Secret.
 */
export function envShards(projectId: string, variables: readonly EnvironmentVariable[]): EnvShard[] {
  const sorted = variables.map((variable, position) => ({ ...variable, position })).sort(byName);
  const shards: (EnvironmentVariable & { position: number })[][] = [];
  let room = 0;
  for (const variable of sorted) {
    const bytes = Buffer.byteLength(variable.name) + Buffer.byteLength(variable.value);
    if (bytes > room) {
      shards.push([]);
      room = SHARD_BYTES;
    }
    shards.at(-1)?.push(variable);
    room -= bytes;
  }
  return shards.map((shard) => ({
    name: envSecretName(projectId, contentHash(projectId, shard)),
    stringData: Object.fromEntries(shard.map(({ name, value }) => [name, value])),
    positions: shard.map(({ position }) => position),
  }));
}

/**
 * The Secrets as a spec names them, with what their variables refer to.
 * @param bound undefined where every value is literal
 */
export function envSources(shards: readonly EnvShard[], bound: BoundReferences | undefined): EnvSource[] {
  return shards.map(({ name, stringData }) => {
    const values = Object.values(stringData);
    if (bound === undefined || !values.some(hasReferenceSyntax)) {
      return { name };
    }
    const references = referencesIn(values).map((reference) => {
      const text = referenceText(reference);
      const project = bound.get(text);
      return { reference: text, ...(project === undefined ? {} : { project }) };
    });
    return { name, references };
  });
}

/** What these Secrets count for against the organization's bytes of variables. */
export function variablesUsage(shards: readonly EnvShard[]): Usage[] {
  return shards.map(({ name, stringData }) => ({
    kind: "variableBytes",
    name,
    amount: Object.entries(stringData).reduce(
      (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
      0,
    ),
  }));
}

/** The project id is hashed, too, so that equal content of two projects has different names. */
function contentHash(projectId: string, shard: readonly EnvironmentVariable[]): string {
  const content = JSON.stringify([projectId, ...shard.map(({ name, value }) => [name, value])]);
  return createHash("sha256").update(content).digest("hex").slice(0, HASH_LENGTH);
}

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

/** The registry that an image reference names, as a container runtime finds it in a Docker configuration. */
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

export type AwsLogin = Extract<ImageAuthentication, { auth_type: "aws" }>["aws"];

/** Type of the Secret that `spec.image.awsCredentialsRef` names. */
export const AWS_REGISTRY_SECRET = "slipway.dev/aws-registry";

export interface AwsRegistrySecret {
  /** `<project id>-aws-<hash of the content>`. */
  name: string;
  stringData: Record<"accessKeyId" | "secretAccessKey" | "region" | "accountId", string>;
}

const REGION = /^[a-z]{2}(-[a-z]+){1,3}-[0-9]{1,2}$/;
const ACCOUNT = /^[0-9]{12}$/;
const ACCESS_KEY = /^[A-Z0-9]{16,128}$/;

/** Host of an account's registry, such as `123456789012.dkr.ecr.eu-west-1.amazonaws.com`. */
export function awsRegistryOf({ region, accountId }: { region: string; accountId: string }): string {
  const suffix = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return `${accountId}.dkr.ecr.${region}.${suffix}`;
}

/** Whether the image is in that registry. */
export function isImageOf(imageUrl: string, registry: string): boolean {
  return imageUrl.startsWith(`${registry}/`);
}

/** What no account of AWS can have, and an image of another registry: the credentials would never pull it. */
export function awsErrors(imageUrl: string, login: AwsLogin): FieldError[] {
  const errors: FieldError[] = [];
  const place = "config.image.authentication.aws";
  const check = (key: keyof AwsLogin, pattern: RegExp, message: string) => {
    if (!pattern.test(login[key])) {
      errors.push({ field: `${place}.${key}`, message });
    }
  };
  check("access_key_id", ACCESS_KEY, "must be an access key of AWS: capital letters and digits");
  check("region", REGION, "must be a region of AWS such as eu-west-1");
  check("account_id", ACCOUNT, "must be the 12 digits of an account");
  if (errors.length > 0) {
    return errors;
  }
  const registry = awsRegistryOf({ region: login.region, accountId: login.account_id });
  if (!isImageOf(imageUrl, registry)) {
    errors.push({
      field: "config.image.url",
      message: `must be an image of the account's registry, ${registry}`,
    });
  }
  return errors;
}

/** The Secret with which the platform logs in to AWS for a project. */
export function awsRegistrySecret(projectId: string, login: AwsLogin): AwsRegistrySecret {
  const stringData = {
    accessKeyId: login.access_key_id,
    secretAccessKey: login.secret_access_key,
    region: login.region,
    accountId: login.account_id,
  };
  const hash = createHash("sha256")
    .update(JSON.stringify([projectId, stringData]))
    .digest("hex");
  return { name: `${projectId}-aws-${hash.slice(0, 12)}`, stringData };
}
