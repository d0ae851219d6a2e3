import type { Readable } from "node:stream";
import { isNotFound } from "./errors.ts";
import type { HttpRequest } from "./http-request.ts";
import type {
  CallOptions,
  ListOptions,
  PodLogOptions,
  PodLogStreamOptions,
  ReadOptions,
  WatchOptions,
} from "./options.ts";
import {
  getRequest,
  listRequest,
  pageSizeOf,
  podLogRequest,
  podLogStreamRequest,
  watchRequest,
  withType,
} from "./requests.ts";
import type { Transport } from "./transport.ts";
import type { KubernetesList, KubernetesObject, ObjectRef, Resource } from "./types.ts";

/** What a client of one apiserver reads; see `KubeClient`. */
export class ReadClient {
  readonly transport: Transport;
  readonly #until: AbortSignal | undefined;

  /** @param until ends every call */
  constructor(transport: Transport, until?: AbortSignal) {
    this.transport = transport;
    this.#until = until;
  }

  /** Reads one object live. @throws KubeError 404 */
  async get<T extends KubernetesObject>(
    resource: Resource,
    ref: ObjectRef,
    options: ReadOptions = {},
  ): Promise<T> {
    const object = await this.json<T>(getRequest(resource, ref, options), options);
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
    const request = listRequest(resource, options);
    const page = await this.json<KubernetesList<T> & { items: T[] | null }>(request, options);
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

  /** Opens a watch; the stream yields one JSON event a line. The caller aborts it through the signal. */
  async watch(resource: Resource, options: WatchOptions): Promise<AsyncIterable<Buffer>> {
    const { signal, timeoutMs = 0 } = options;
    const response = await this.transport.send({
      ...watchRequest(resource, options),
      ...this.call({ signal, timeoutMs }),
    });
    return response.body;
  }

  /**
   * The end of a container's log as the node keeps it, each line after its RFC 3339 time and a space.
   * @throws KubeError 400 when the container has not started, 404 without the pod, 500 or status 0 when its node is silent
   */
  podLog(ref: ObjectRef, options: PodLogOptions): Promise<Buffer> {
    const request = { ...podLogRequest(ref, options), ...this.call(options) };
    return this.transport.bytes(request, options.limitBytes);
  }

  /**
   * A container's log from some place on; followed, it ends with the container. The caller reads it, or aborts it through the
   * signal.
   * @throws KubeError as `podLog` does; reading on fails with the connection's own error
   */
  async streamPodLog(ref: ObjectRef, options: PodLogStreamOptions): Promise<Readable> {
    const response = await this.transport.send({
      ...podLogStreamRequest(ref, options),
      ...this.call(options),
    });
    return response.body;
  }

  /** The apiserver's own time, in whole seconds (rounded down). @throws KubeError; Error when it says none */
  async serverTime(options: CallOptions = {}): Promise<Date> {
    const response = await this.transport.send({ method: "GET", path: "/version", ...this.call(options) });
    await response.body.dump();
    const date = new Date(String(response.headers.date));
    if (Number.isNaN(date.getTime())) {
      throw new Error("the apiserver's answer has no Date");
    }
    return date;
  }

  /** Any other path of the apiserver, such as `/readyz`, as text. */
  text(request: HttpRequest): Promise<string> {
    return this.transport.text({ ...request, ...this.call(request) });
  }

  protected json<T>(request: HttpRequest, options: CallOptions): Promise<T> {
    return this.transport.json<T>({ ...request, ...this.call(options) });
  }

  protected call({ signal, timeoutMs }: CallOptions): CallOptions {
    const both = this.signalOf(signal);
    return { ...(both ? { signal: both } : {}), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  }

  protected signalOf(signal: AbortSignal | undefined): AbortSignal | undefined {
    return signal && this.#until ? AbortSignal.any([signal, this.#until]) : (signal ?? this.#until);
  }
}
