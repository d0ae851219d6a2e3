/** Builds the requests of the client. Pure: what is sent depends on the arguments alone. */

import {
  collectionPath,
  type ExecStreamRequest,
  type ExecTransportRequest,
  type HttpRequest,
  objectPath,
  type Query,
} from "./http-request.ts";
import type {
  ApplyOptions,
  DeleteOptions,
  ListOptions,
  PatchType,
  PodExecOptions,
  PodExecStreamOptions,
  PodLogOptions,
  PodLogStreamOptions,
  ReadOptions,
  WatchOptions,
  WriteOptions,
} from "./options.ts";
import { resources } from "./resources.ts";
import { apiVersionOf, type KubernetesObject, type ObjectRef, type Resource, refOf } from "./types.ts";

const PATCH_CONTENT_TYPE: Record<PatchType, string> = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

export function getRequest(resource: Resource, ref: ObjectRef, options: ReadOptions): HttpRequest {
  return {
    method: "GET",
    path: objectPath(resource, ref),
    accept: acceptOf("PartialObjectMetadata", options),
  };
}

export function listRequest(
  resource: Resource,
  { namespace, signal: _, timeoutMs: __, metadataOnly, ...selection }: ListOptions,
): HttpRequest {
  return {
    method: "GET",
    path: collectionPath(resource, namespace),
    query: { ...selection },
    accept: acceptOf("PartialObjectMetadataList", { metadataOnly }),
    verb: "list",
  };
}

export function watchRequest(
  resource: Resource,
  { namespace, signal: _, timeoutMs: __, metadataOnly, ...selection }: WatchOptions,
): HttpRequest {
  return {
    method: "GET",
    path: collectionPath(resource, namespace),
    query: { ...selection, watch: true, allowWatchBookmarks: true },
    accept: acceptOf("PartialObjectMetadata", { metadataOnly }),
    verb: "watch",
  };
}

export function applyRequest(
  resource: Resource,
  object: KubernetesObject,
  options: ApplyOptions,
): HttpRequest {
  return {
    method: "PATCH",
    path: objectPath(resource, refOf(object), options.subresource),
    query: { ...writeQuery(options), force: options.force ?? true },
    body: JSON.stringify(object),
    contentType: "application/apply-patch+yaml",
    verb: "apply",
  };
}

export function patchRequest(
  resource: Resource,
  ref: ObjectRef,
  patch: unknown,
  options: WriteOptions & { type?: PatchType },
): HttpRequest {
  return {
    method: "PATCH",
    path: objectPath(resource, ref, options.subresource),
    query: writeQuery(options),
    body: JSON.stringify(patch),
    contentType: PATCH_CONTENT_TYPE[options.type ?? "merge"],
  };
}

export function deleteRequest(resource: Resource, ref: ObjectRef, options: DeleteOptions): HttpRequest {
  const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds } = options;
  const body = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    propagationPolicy: propagationPolicy ?? "Background",
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(uid || resourceVersion
      ? { preconditions: { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) } }
      : {}),
  };
  return { method: "DELETE", path: objectPath(resource, ref), body: JSON.stringify(body) };
}

export function podLogRequest(ref: ObjectRef, options: PodLogOptions): HttpRequest {
  const { container, previous, tailLines, limitBytes } = options;
  return {
    method: "GET",
    path: objectPath(resources.pods, ref, "log"),
    query: { container, previous, tailLines, limitBytes, timestamps: true },
    accept: "*/*",
    verb: "log",
  };
}

export function podLogStreamRequest(
  ref: ObjectRef,
  { signal: _, timeoutMs: __, bounded = false, ...query }: PodLogStreamOptions,
): HttpRequest {
  return {
    method: "GET",
    path: objectPath(resources.pods, ref, "log"),
    query,
    accept: "*/*",
    verb: "log",
    streams: !bounded,
  };
}

export function podExecRequest(ref: ObjectRef, options: PodExecOptions): ExecTransportRequest {
  const { container, command, stdin, onStdout } = options;
  return {
    path: objectPath(resources.pods, ref, "exec"),
    query: [
      ["container", container],
      ["stdin", "true"],
      ["stdout", "true"],
      ["stderr", "true"],
      ...command.map((part): [string, string] => ["command", part]),
    ],
    ...(stdin === undefined ? {} : { stdin }),
    ...(onStdout === undefined ? {} : { onStdout }),
  };
}

export function podExecStreamRequest(ref: ObjectRef, options: PodExecStreamOptions): ExecStreamRequest {
  const { container, command, stdin, tty, maxPayload } = options;
  return {
    path: objectPath(resources.pods, ref, "exec"),
    query: [
      ["container", container],
      ["stdin", String(stdin)],
      ["stdout", "true"],
      // A terminal has one output.
      ["stderr", String(!tty)],
      ["tty", String(tty)],
      ...command.map((part): [string, string] => ["command", part]),
    ],
    maxPayload,
  };
}

/** The object with its own `apiVersion` and `kind`: items of a list lack them, and metadata alone comes as another kind. */
export function withType<T extends KubernetesObject>(object: T, resource: Resource): T {
  if (object.apiVersion && object.kind && object.kind !== "PartialObjectMetadata") {
    return object;
  }
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}

/** Items a page of a list: those that are requested as metadata alone are large, and their metadata may be, too. */
export function pageSizeOf({ metadataOnly }: ReadOptions): number {
  return metadataOnly ? 50 : 500;
}

/** The second choice is for failures, such as 404: a Status cannot be had as metadata, and would be a 406. */
function acceptOf(
  kind: "PartialObjectMetadata" | "PartialObjectMetadataList",
  { metadataOnly }: ReadOptions,
): string | undefined {
  return metadataOnly ? `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json` : undefined;
}

export function writeQuery(options: WriteOptions): Query {
  return { fieldManager: options.fieldManager, dryRun: options.dryRun ? "All" : undefined };
}

/** Annotations that every write of an object of that kind carries; null takes one away. Pure at the time of the write. */
export type Annotate = (resource: Resource) => Readonly<Record<string, string | null>> | undefined;

/** The object with the annotations, to be created or applied. Pure. */
export function annotated<T extends KubernetesObject>(object: T, annotations: ReturnType<Annotate>): T {
  const given = Object.entries(annotations ?? {}).filter(([, value]) => value !== null);
  if (given.length === 0) {
    return object;
  }
  const { metadata } = object;
  const merged = { ...metadata?.annotations, ...Object.fromEntries(given) };
  return { ...object, metadata: { ...metadata, annotations: merged } };
}

/** A merge patch that sets the annotations beside what it changes. Pure. */
export function annotatedPatch(patch: unknown, annotations: ReturnType<Annotate>): unknown {
  if (annotations === undefined || typeof patch !== "object" || patch === null) {
    return patch;
  }
  const { metadata } = patch as KubernetesObject;
  return { ...patch, metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } } };
}
