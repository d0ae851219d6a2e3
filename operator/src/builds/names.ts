/** Names and labels of what belongs to a build, in the namespace of builds. Pure. */

import { createHash } from "node:crypto";
import type { Container } from "@slipway/builder/contract";
import { type Build, GROUP, labels, MANAGED_BY, organizationOfNamespace } from "@slipway/crds";

/** On all objects of one build. Not a project's label: builds are not part of its workload. */
export const BUILD_LABEL = `${GROUP}/build`;
/** On pods and caches: those of one project, whatever it is called. */
export const CACHE_LABEL = `${GROUP}/build-cache`;
/** On pods: the Build's name, which may be too long for a label. */
export const BUILD_NAME_ANNOTATION = `${GROUP}/build-name`;
/** On pods: number of the attempt, from 1. */
export const ATTEMPT_ANNOTATION = `${GROUP}/build-try`;

const hash = (...parts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 10);

const readable = (text: string, length: number): string => text.replace(/[^a-z0-9-]/g, "-").slice(0, length);

/** Value of the build's label. Builds of several organizations may have the same name. */
export function buildLabel({ metadata }: Build): string {
  const { namespace = "", name, uid = "" } = metadata;
  return `${readable(name, 30)}-${hash(namespace, name, uid)}`;
}

export const podName = (build: Build, attempt: number): string => `${buildLabel(build)}-${attempt}`;

/** The Secret is owned by the pod and deleted with it. */
export const secretName = (pod: string, container: Container): string => `${pod}-${container}`;

/** Claim of a project's cache. Another project of the same id has another. */
export function cacheName({ id, uid }: { id: string; uid: string }): string {
  return `cache-${readable(id, 30)}-${hash(id, uid)}`;
}

export function organizationOfBuild({ metadata }: Build): string {
  return organizationOfNamespace(metadata.namespace ?? "") ?? "";
}

/** Labels of the pod and the Secrets of a build. */
export function buildLabels(build: Build, cache: string): Record<string, string> {
  return {
    [labels.managedBy]: MANAGED_BY,
    [labels.organization]: organizationOfBuild(build),
    [BUILD_LABEL]: buildLabel(build),
    [CACHE_LABEL]: cache,
  };
}
