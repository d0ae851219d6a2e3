import { type Clock, systemClock } from "@slipway/process";
import type { ClusterConfig } from "./cluster-config.ts";
import { anonymousCredentials, clusterCredentials } from "./credentials.ts";
import { isNotFound } from "./errors.ts";
import type { ExecResult } from "./exec.ts";
import type { ExecSocket } from "./exec-connection.ts";
import { collectionPath, objectPath } from "./http-request.ts";
import type {
  ApplyOptions,
  DeleteOptions,
  PatchType,
  PodExecOptions,
  PodExecStreamOptions,
  WriteOptions,
} from "./options.ts";
import { ReadClient } from "./read-client.ts";
import {
  type Annotate,
  annotated,
  annotatedPatch,
  applyRequest,
  deleteRequest,
  patchRequest,
  podExecRequest,
  podExecStreamRequest,
  withType,
  writeQuery,
} from "./requests.ts";
import { Transport, type TransportOptions } from "./transport.ts";
import { type KubernetesObject, type ObjectRef, type Resource, refOf } from "./types.ts";

export type KubeClientOptions = Omit<TransportOptions, "credentials"> & {
  /** Annotations for every object that is created, replaced, applied or patched by merging; none unless given. */
  annotate?: Annotate;
};

/**
 * A typed REST client of one apiserver. Every method throws `KubeError` on failure, or the abort reason of the caller's
 * signal. `T` is trusted, not checked: the apiserver's schema is the check.
 */
export class KubeClient extends ReadClient {
  readonly #annotate: Annotate | undefined;

  /** @param until ends every call */
  constructor(transport: Transport, until?: AbortSignal, annotate?: Annotate) {
    super(transport, until);
    this.#annotate = annotate;
  }

  /** A client of a kubeconfig's current context. */
  static fromConfig(config: ClusterConfig, options: KubeClientOptions = {}): KubeClient {
    const clock: Clock = options.clock ?? systemClock;
    const transport = new Transport({ ...options, credentials: clusterCredentials(config, clock) });
    return new KubeClient(transport, undefined, options.annotate);
  }

  /** A client without credentials, for a fake apiserver. */
  static forUrl(url: string, options: KubeClientOptions = {}): KubeClient {
    const transport = new Transport({ ...options, credentials: anonymousCredentials(url) });
    return new KubeClient(transport, undefined, options.annotate);
  }

  /** This client over the same connections, whose every call ends with the signal, too. */
  until(signal: AbortSignal): KubeClient {
    return new KubeClient(this.transport, this.signalOf(signal), this.#annotate);
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
    return this.json(applyRequest(resource, body, options), options);
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
    return this.json(patchRequest(resource, ref, body, options), options);
  }

  /**
   * Deletes; false when it did not exist. True means accepted: finalizers may hold the object a while.
   * @throws KubeError 409 when a precondition (`uid`, `resourceVersion`) does not hold
   */
  async delete(resource: Resource, ref: ObjectRef, options: DeleteOptions = {}): Promise<boolean> {
    try {
      await this.transport.text({ ...deleteRequest(resource, ref, options), ...this.call(options) });
      return true;
    } catch (error) {
      if (isNotFound(error)) {
        return false;
      }
      throw error;
    }
  }

  /**
   * Runs a command in a container and waits for its end. `timeoutMs` is for all of it.
   * @throws KubeError when it cannot be run, or its end is not reported; never for what the command itself answers
   */
  podExec(ref: ObjectRef, options: PodExecOptions): Promise<ExecResult> {
    return this.transport.exec({ ...podExecRequest(ref, options), ...this.call(options) });
  }

  /**
   * Starts a command in a container, and returns the socket of its streams, paused, once the apiserver has accepted: until then
   * `signal` and `timeoutMs` end it, from then on the caller does. Closing the client does not.
   * @throws KubeError when it cannot be started
   */
  podExecStream(ref: ObjectRef, options: PodExecStreamOptions): Promise<ExecSocket> {
    return this.transport.execStream({ ...podExecStreamRequest(ref, options), ...this.call(options) });
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
    return this.json({ method, path, query: writeQuery(options), body: JSON.stringify(object) }, options);
  }
}
