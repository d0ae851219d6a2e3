/** The Secrets of a build's containers, one for each, owned by the pod. Pure. */

import type { BaseImages, Container } from "@slipway/builder/contract";
import type { KubernetesObject, OwnerReference } from "@slipway/controller-runtime";
import { type Build, mintRegistryToken, type RegistryAccess } from "@slipway/crds";
import { buildLabels, secretName } from "../names.ts";
import type { BuildSettings } from "../settings.ts";
import { repositoryPath } from "./tasks.ts";

/** Contents by path below the folder of secrets. */
export type SecretFiles = Readonly<Record<string, string>>;

export interface SecretInput {
  build: Build;
  settings: BuildSettings;
  /** Of the Git server; absent for a public repository. */
  credential?: { username: string; password: string };
  /** Authority of the Git server as PEM; public ones when empty. */
  gitCa: string;
  /** Variables of the project. */
  envs: Readonly<Record<string, string>>;
  /** Variables for tools of the build, such as mirrors of package registries. */
  tools: Readonly<Record<string, string>>;
  /** PEM private key that signs tokens of the registry. */
  registryKey: string;
  now: Date;
}

/** Beyond the deadline of the pod, which may wait for a node before it starts. */
const TOKEN_SPARE_SECONDS = 600;

/** Names that are valid keys of a Secret. */
const NAME = /^[-._a-zA-Z0-9]{1,200}$/;

export function secretFiles(input: SecretInput): Record<Container, SecretFiles> {
  const { build, settings, credential, gitCa, envs, tools } = input;
  const { registry } = settings;
  const registryCa: SecretFiles = registry.ca === "" ? {} : { "ca/registry.pem": registry.ca };
  const pulled = baseRepositories(settings.baseImages, registry.host).map(
    (repository): RegistryAccess => ({ repository, actions: ["pull"] }),
  );
  return {
    fetch: {
      ...(credential ? { "git/username": credential.username, "git/password": credential.password } : {}),
      ...(gitCa === "" ? {} : { "ca/git.pem": gitCa }),
    },
    build: {
      ...inFolder("envs", envs),
      ...inFolder("tools", tools),
      ...registryCa,
      ...(settings.ca === "" ? {} : { "ca/steps.pem": settings.ca }),
      ...(pulled.length === 0 ? {} : { "registry/config.json": dockerConfig(input, pulled) }),
    },
    push: {
      ...registryCa,
      "registry/config.json": dockerConfig(input, [
        { repository: repositoryPath(build), actions: ["pull", "push"] },
      ]),
    },
  };
}

/** The Secret of one container. @param pod its owner */
export function containerSecret(
  { build, settings }: Pick<SecretInput, "build" | "settings">,
  {
    container,
    files,
    cache,
    pod,
  }: { container: Container; files: SecretFiles; cache: string; pod: { name: string; uid: string } },
): KubernetesObject & { immutable: boolean; data: Record<string, string> } {
  const owner: OwnerReference = {
    apiVersion: "v1",
    kind: "Pod",
    name: pod.name,
    uid: pod.uid,
    controller: true,
    blockOwnerDeletion: false,
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: secretName(pod.name, container),
      namespace: settings.namespace,
      labels: buildLabels(build, cache),
      ownerReferences: [owner],
    },
    immutable: true,
    data: Object.fromEntries(
      Object.entries(files).map(([path, text]) => [keyOf(path), Buffer.from(text).toString("base64")]),
    ),
  };
}

/** Maps the keys of a Secret to files in folders. */
export function secretItems(files: SecretFiles): { key: string; path: string }[] {
  return Object.keys(files)
    .toSorted()
    .map((path) => ({ key: keyOf(path), path }));
}

const keyOf = (path: string): string => path.replace("/", ".");

const inFolder = (folder: string, values: Readonly<Record<string, string>>): SecretFiles =>
  Object.fromEntries(
    Object.entries(values)
      // `..` leads out of the folder, and is what Kubernetes' own entries begin with.
      .filter(([name]) => NAME.test(name) && !name.startsWith("."))
      .map(([name, value]) => [`${folder}/${name}`, value]),
  );

/** Repositories of base images in the builds' registry. */
export function baseRepositories(images: BaseImages, host: string): string[] {
  const references = Object.values(images).flatMap((versions) =>
    Object.values(versions).flatMap(({ build, run }) => [build, run]),
  );
  const own = references
    .filter((reference) => reference.startsWith(`${host}/base/`))
    .map((reference) => reference.slice(host.length + 1).replace(/[@:].*$/, ""));
  return [...new Set(own)].toSorted();
}

function dockerConfig({ build, settings, registryKey, now }: SecretInput, access: RegistryAccess[]): string {
  const lifetime = settings.limits.deadlineSeconds + TOKEN_SPARE_SECONDS;
  const token = mintRegistryToken(registryKey, `build/${build.metadata.name}`, access, lifetime, now);
  return JSON.stringify({ auths: { [settings.registry.host]: { registrytoken: token } } });
}

/** The part of a Secret that is used. */
export interface SecretValues extends KubernetesObject {
  data?: Record<string, string>;
}

/** A Secret's values as text. */
export function secretTexts(secret: SecretValues | undefined): Partial<Record<string, string>> {
  const entries = Object.entries(secret?.data ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value, "base64").toString()]));
}
