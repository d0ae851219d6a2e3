import type { Readable } from "node:stream";
import type { KubeConfig } from "@kubernetes/client-node";
import { type Clock, systemClock } from "@slipway/process";
import { type Annotate, annotated, annotatedPatch } from "./annotate.ts";
import { anonymousCredentials, kubeConfigCredentials } from "./credentials.ts";
import { isNotFound } from "./errors.ts";
import type { ExecResult } from "./exec.ts";
import { collectionPath, objectPath, type Query } from "./paths.ts";
import { resources } from "./resources.ts";
import { type HttpRequest, Transport, type TransportOptions } from "./transport.ts";
import {
  apiVersionOf,
  type KubernetesList,
  type KubernetesObject,
  type ObjectRef,
  type Resource,
  refOf,
} from "./types.ts";

/** What every call takes. */
export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds; 30,000 unless the client says otherwise. */
  timeoutMs?: number;
}

export interface ReadOptions extends CallOptions {
  /** The server sends `metadata` alone: nothing else of the object, such as a Secret's data, comes over the connection. */
  metadataOnly?: boolean;
}

export interface WriteOptions extends CallOptions {
  /** Owner of the written fields in `managedFields`. */
  fieldManager?: string;
  dryRun?: boolean;
  /** A subresource such as `status` or `scale`. */
  subresource?: string;
}

export interface ApplyOptions extends WriteOptions {
  fieldManager: string;
  /** Take fields over from other managers; true unless given. */
  force?: boolean;
}

export interface ListOptions extends ReadOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  continue?: string;
  resourceVersion?: string;
}

export interface DeleteOptions extends CallOptions {
  /** Delete only the object with this uid: never its namesake made since. */
  uid?: string;
  resourceVersion?: string;
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  gracePeriodSeconds?: number;
}

export interface WatchOptions extends ReadOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  resourceVersion: string;
  timeoutSeconds: number;
}

export interface PodLogOptions extends CallOptions {
  container: string;
  /** The log of the container's run before this one. */
  previous?: boolean;
  /** How many of the last lines. */
  tailLines: number;
  /** Bytes of those lines, counted from the first of them: a longer log loses its end. */
  limitBytes: number;
}

/** Of a container's log that is read as a stream. */
export interface PodLogStreamOptions {
  container: string;
  /** The log of the container's run before this one. */
  previous?: boolean;
  /** False reads to the present end. */
  follow?: boolean;
  /** Each line after its RFC 3339 time and a space. */
  timestamps?: boolean;
  /** How many of the last lines to begin with. */
  tailLines?: number;
  /** RFC 3339 to the second: from which on. */
  sinceTime?: string;
  /** Milliseconds until the node must have begun to answer; while `bounded`, also the longest silence after that. */
  timeoutMs: number;
  /** On a connection of the pool, and not on one of its own, on which any silence is allowed. */
  bounded?: boolean;
  /** Ends it. */
  signal: AbortSignal;
}

export interface PodExecOptions extends CallOptions {
  container: string;
  /** Program and arguments. Never a secret: every process of the node can list them. */
  command: readonly string[];
  /** What the command reads. */
  stdin?: string;
}

/** How a patch is merged. */
export type PatchType = "merge" | "json" | "strategic";

const PATCH_CONTENT_TYPE: Record<PatchType, string> = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

export type KubeClientOptions = Omit<TransportOptions, "credentials"> & {
  /** Annotations for every object that is created, replaced, applied or patched by merging; none unless given. */
  annotate?: Annotate;
};

/**
 * A typed REST client of one apiserver. Every method throws `KubeError` on failure, or the abort reason of the caller's
 * signal. `T` is trusted, not checked: the apiserver's schema is the check.
 */
export class KubeClient {
  readonly transport: Transport;
  readonly #until: AbortSignal | undefined;
  readonly #annotate: Annotate | undefined;

  /** @param until ends every call */
  constructor(transport: Transport, until?: AbortSignal, annotate?: Annotate) {
    this.transport = transport;
    this.#until = until;
    this.#annotate = annotate;
  }

  /** A client of a kubeconfig's current context. */
  static fromConfig(config: KubeConfig, options: KubeClientOptions = {}): KubeClient {
    const clock: Clock = options.clock ?? systemClock;
    const transport = new Transport({ ...options, credentials: kubeConfigCredentials(config, clock) });
    return new KubeClient(transport, undefined, options.annotate);
  }

  /** A client without credentials, for a fake apiserver. */
  static forUrl(url: string, options: KubeClientOptions = {}): KubeClient {
    const transport = new Transport({ ...options, credentials: anonymousCredentials(url) });
    return new KubeClient(transport, undefined, options.annotate);
  }

  /** This client over the same connections, whose every call ends with the signal, too. */
  until(signal: AbortSignal): KubeClient {
    return new KubeClient(this.transport, this.#signal(signal), this.#annotate);
  }

  /** Reads one object live. @throws KubeError 404 */
  async get<T extends KubernetesObject>(
    resource: Resource,
    ref: ObjectRef,
    options: ReadOptions = {},
  ): Promise<T> {
    const accept = acceptOf("PartialObjectMetadata", options);
    const object = await this.#json<T>({ method: "GET", path: objectPath(resource, ref), accept }, options);
    return withType(object, resource);
  }

  /** Reads one object live; undefined when it does not exist. */
  async getOrUndefined<T extends KubernetesObject>(
    resource: Resource,
    ref: ObjectRef,
    options: ReadOptions = {},
  ): Promise<T | undefined> {
    try {
      return await this.get<T>(resource, ref, options);
    } catch (error) {
      if (isNotFound(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /** One page of a list. Items lack `apiVersion` and `kind`, as the API sends them. */
  async list<T extends KubernetesObject>(
    resource: Resource,
    options: ListOptions = {},
  ): Promise<KubernetesList<T>> {
    const { namespace, signal, timeoutMs, metadataOnly, ...selection } = options;
    const query: Query = { ...selection };
    const accept = acceptOf("PartialObjectMetadataList", { metadataOnly });
    const page = await this.#json<KubernetesList<T> & { items: T[] | null }>(
      { method: "GET", path: collectionPath(resource, namespace), query, accept, verb: "list" },
      { signal, timeoutMs },
    );
    // Metadata of nothing is listed as null.
    return { ...page, items: page.items ?? [] };
  }

  /** Every page of a list, with `apiVersion` and `kind` filled in. @throws KubeError 410 when it took too long */
  async listAll<T extends KubernetesObject>(resource: Resource, options: ListOptions = {}): Promise<T[]> {
    const items: T[] = [];
    let page: KubernetesList<T> | undefined;
    do {
      page = await this.list<T>(resource, {
        limit: pageSizeOf(options),
        ...options,
        ...(page ? { continue: page.metadata.continue, resourceVersion: undefined } : {}),
      });
      for (const item of page.items) {
        items.push(withType(item, resource));
      }
    } while (page.metadata.continue);
    return items;
  }

  /** Creates; the name may come from `generateName`. @throws KubeError 409 AlreadyExists, 422 Invalid */
  create<T extends KubernetesObject>(resource: Resource, object: T, options: WriteOptions = {}): Promise<T> {
    const path = collectionPath(resource, resource.namespaced ? object.metadata?.namespace : undefined);
    const subpath = options.subresource ? objectPath(resource, refOf(object), options.subresource) : path;
    return this.#write("POST", subpath, this.#annotated(resource, object, options), options);
  }

  /** Replaces. With `metadata.resourceVersion` set, fails with a conflict when the object changed since. */
  replace<T extends KubernetesObject>(resource: Resource, object: T, options: WriteOptions = {}): Promise<T> {
    const path = objectPath(resource, refOf(object), options.subresource);
    return this.#write("PUT", path, this.#annotated(resource, object, options), options);
  }

  /** Replaces the status subresource; spec and metadata in the body are ignored by the server. */
  updateStatus<T extends KubernetesObject>(
    resource: Resource,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.replace(resource, object, { ...options, subresource: "status" });
  }

  /** Server-side apply: creates, or sets exactly the given fields in the name of the field manager. */
  apply<T extends KubernetesObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T> {
    const body = this.#annotated(resource, object, options);
    return this.#json(
      {
        method: "PATCH",
        path: objectPath(resource, refOf(object), options.subresource),
        query: { ...writeQuery(options), force: options.force ?? true },
        body: JSON.stringify(body),
        contentType: "application/apply-patch+yaml",
        verb: "apply",
      },
      options,
    );
  }

  /** Patches. A `metadata.resourceVersion` in a merge patch makes it conditional. */
  patch<T extends KubernetesObject>(
    resource: Resource,
    ref: ObjectRef,
    patch: unknown,
    options: WriteOptions & { type?: PatchType } = {},
  ): Promise<T> {
    const merges = (options.type ?? "merge") === "merge" && options.subresource === undefined;
    const body = merges ? annotatedPatch(patch, this.#annotate?.(resource)) : patch;
    return this.#json(
      {
        method: "PATCH",
        path: objectPath(resource, ref, options.subresource),
        query: writeQuery(options),
        body: JSON.stringify(body),
        contentType: PATCH_CONTENT_TYPE[options.type ?? "merge"],
      },
      options,
    );
  }

  /**
   * Deletes; false when it did not exist. True means accepted: finalizers may hold the object a while.
   * @throws KubeError 409 when a precondition (`uid`, `resourceVersion`) does not hold
   */
  async delete(resource: Resource, ref: ObjectRef, options: DeleteOptions = {}): Promise<boolean> {
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
    try {
      await this.transport.text({
        ...this.#call(options),
        method: "DELETE",
        path: objectPath(resource, ref),
        body: JSON.stringify(body),
      });
      return true;
    } catch (error) {
      if (isNotFound(error)) {
        return false;
      }
      throw error;
    }
  }

  /** Opens a watch; the stream yields one JSON event a line. The caller aborts it through the signal. */
  async watch(resource: Resource, options: WatchOptions): Promise<AsyncIterable<Buffer>> {
    const { namespace, signal, timeoutMs, metadataOnly, ...rest } = options;
    const response = await this.transport.send({
      method: "GET",
      path: collectionPath(resource, namespace),
      query: { ...rest, watch: true, allowWatchBookmarks: true },
      accept: acceptOf("PartialObjectMetadata", { metadataOnly }),
      verb: "watch",
      ...this.#call({ signal, timeoutMs: timeoutMs ?? 0 }),
    });
    return response.body;
  }

  /**
   * The end of a container's log as the node keeps it, each line after its RFC 3339 time and a space.
   * @throws KubeError 400 when the container has not started, 404 without the pod, 500 or status 0 when its node is silent
   */
  podLog(ref: ObjectRef, options: PodLogOptions): Promise<Buffer> {
    const { container, previous, tailLines, limitBytes } = options;
    return this.transport.bytes(
      {
        ...this.#call(options),
        method: "GET",
        path: objectPath(resources.pods, ref, "log"),
        query: { container, previous, tailLines, limitBytes, timestamps: true },
        accept: "*/*",
        verb: "log",
      },
      limitBytes,
    );
  }

  /**
   * A container's log from some place on; followed, it ends with the container. The caller reads it, or aborts it through the
   * signal.
   * @throws KubeError as `podLog` does; reading on fails with the connection's own error
   */
  async streamPodLog(ref: ObjectRef, options: PodLogStreamOptions): Promise<Readable> {
    const { signal, timeoutMs, bounded = false, ...query } = options;
    const response = await this.transport.send({
      ...this.#call({ signal, timeoutMs }),
      method: "GET",
      path: objectPath(resources.pods, ref, "log"),
      query,
      accept: "*/*",
      verb: "log",
      streams: !bounded,
    });
    return response.body;
  }

  /**
   * Runs a command in a container and waits for its end. `timeoutMs` is for all of it.
   * @throws KubeError when it cannot be run, or its end is not reported; never for what the command itself answers
   */
  podExec(ref: ObjectRef, options: PodExecOptions): Promise<ExecResult> {
    const { container, command, stdin } = options;
    return this.transport.exec({
      ...this.#call(options),
      path: objectPath(resources.pods, ref, "exec"),
      query: [
        ["container", container],
        ["stdin", "true"],
        ["stdout", "true"],
        ["stderr", "true"],
        ...command.map((part): [string, string] => ["command", part]),
      ],
      ...(stdin === undefined ? {} : { stdin }),
    });
  }

  /** The apiserver's own time, in whole seconds (rounded down). @throws KubeError; Error when it says none */
  async serverTime(options: CallOptions = {}): Promise<Date> {
    const response = await this.transport.send({ method: "GET", path: "/version", ...this.#call(options) });
    await response.body.dump();
    const date = new Date(String(response.headers.date));
    if (Number.isNaN(date.getTime())) {
      throw new Error("the apiserver's answer has no Date");
    }
    return date;
  }

  /** Any other path of the apiserver, such as `/readyz`, as text. */
  text(request: HttpRequest): Promise<string> {
    return this.transport.text({ ...request, ...this.#call(request) });
  }

  /** Closes every connection. */
  close(): Promise<void> {
    return this.transport.close();
  }

  /** The object as it is sent: typed, and annotated unless only a subresource is written. */
  #annotated<T extends KubernetesObject>(resource: Resource, object: T, options: WriteOptions): T {
    const typed = withType(object, resource);
    return options.subresource === undefined ? annotated(typed, this.#annotate?.(resource)) : typed;
  }

  #write<T extends KubernetesObject>(
    method: "POST" | "PUT",
    path: string,
    object: T,
    options: WriteOptions,
  ): Promise<T> {
    return this.#json({ method, path, query: writeQuery(options), body: JSON.stringify(object) }, options);
  }

  #json<T>(request: HttpRequest, options: CallOptions): Promise<T> {
    return this.transport.json<T>({ ...request, ...this.#call(options) });
  }

  #call({ signal, timeoutMs }: CallOptions): CallOptions {
    const both = this.#signal(signal);
    return { ...(both ? { signal: both } : {}), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  }

  #signal(signal: AbortSignal | undefined): AbortSignal | undefined {
    return signal && this.#until ? AbortSignal.any([signal, this.#until]) : (signal ?? this.#until);
  }
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

function writeQuery(options: WriteOptions): Query {
  return { fieldManager: options.fieldManager, dryRun: options.dryRun ? "All" : undefined };
}
