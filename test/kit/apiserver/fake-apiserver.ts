import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { labelMatcher, parseRoute, type Route } from "./fake-route.ts";
import {
  FakeEtcd,
  type FakeEvent,
  type FakeObject,
  FakeRefusal,
  type JsonPatchOperation,
} from "./fake-store.ts";

/** A request that the fake has answered, without its body. */
export interface SeenRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  accept: string;
}

interface OpenWatch {
  collection: string;
  namespace: string | undefined;
  response: ServerResponse;
  metadataOnly: boolean;
}

interface Fault {
  matches: (request: SeenRequest) => boolean;
  status: number;
  reason: string;
  retryAfter: number | undefined;
  left: number;
}

/**
 * An apiserver in this process for unit tests: any resource, list by pages, watch with history and bookmarks, metadata
 * alone, server-side apply, status subresource, preconditions, finalizers; no schema and no admission. And faults on demand.
 */
export class FakeApiserver {
  /** The objects; change them here to play another client. */
  readonly etcd = new FakeEtcd();
  /** Every request so far. */
  readonly requests: SeenRequest[] = [];
  readonly #watches = new Set<OpenWatch>();
  #server: Server | undefined;
  #port = 0;
  #faults: Fault[] = [];
  /** Bytes for a request that is about no object, such as a log; a promise that never settles hangs like a dead node. */
  raw: ((request: SeenRequest) => Buffer | Promise<Buffer> | undefined) | undefined;
  /** Answers a request for a followed text with headers, and leaves the body to the test; false for every other request. */
  stream: ((request: SeenRequest, response: ServerResponse) => boolean) | undefined;
  /** While true, watches get nothing, not even the events that happen. */
  stalled = false;

  static async start(): Promise<FakeApiserver> {
    const fake = new FakeApiserver();
    fake.etcd.onEvent((event) => fake.#notify(event));
    await fake.up();
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens, on the same port as before. */
  async up(): Promise<void> {
    const server = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => {
        if (!response.headersSent) {
          respond(response, 500, status(500, "InternalError", String(error)));
        } else {
          response.destroy();
        }
      });
    });
    // As long as a real one keeps connections: a client that has been idle for some seconds finds its own open.
    server.keepAliveTimeout = 180_000;
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", () => resolve());
    });
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Refuses connections and cuts those that are open; the objects stay. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#watches.clear();
    await new Promise<void>((resolve) => {
      if (!server) {
        return resolve();
      }
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  /** Breaks every watch in the middle of its connection. */
  cutWatches(): void {
    for (const { response } of this.#watches) {
      response.destroy();
    }
    this.#watches.clear();
  }

  /** Ends every watch in order, as the server does after `timeoutSeconds`. */
  endWatches(): void {
    for (const { response } of this.#watches) {
      response.end();
    }
    this.#watches.clear();
  }

  /** Writes bytes into every open watch. */
  sendRaw(text: string): void {
    for (const { response } of this.#watches) {
      response.write(text);
    }
  }

  /** Sends a bookmark of the present version into every open watch. */
  bookmark(): void {
    const object = { metadata: { resourceVersion: String(this.etcd.version) } };
    this.sendRaw(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  /** Answers the next matching requests with a failure. */
  failNext(
    matches: (request: SeenRequest) => boolean,
    options: { status: number; reason?: string; retryAfter?: number; times?: number },
  ): void {
    const { status: code, reason = "Fault", retryAfter, times = 1 } = options;
    this.#faults.push({ matches, status: code, reason, retryAfter, left: times });
  }

  /** How many requests changed something or tried to, leases and events aside. */
  writes(since = 0): SeenRequest[] {
    return this.requests
      .slice(since)
      .filter(({ method, path }) => method !== "GET" && !/\/(leases|events)(\/|$)/.test(path));
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    await this.down();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    const body = await readBody(request);
    const seen = {
      method: request.method ?? "GET",
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      accept: request.headers.accept ?? "",
    };
    const metadataOnly = seen.accept.includes(";as=PartialObjectMetadata");
    this.requests.push(seen);
    const fault = this.#faults.find((candidate) => candidate.left > 0 && candidate.matches(seen));
    if (fault) {
      fault.left -= 1;
      const headers: Record<string, string> =
        fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) };
      respond(response, fault.status, status(fault.status, fault.reason, "injected"), headers);
      return;
    }
    if (this.stream?.(seen, response)) {
      return;
    }
    const raw = this.raw?.(seen);
    if (raw !== undefined) {
      const bytes = await raw;
      response.writeHead(200, { "content-type": "text/plain" });
      response.end(bytes);
      return;
    }
    const route = parseRoute(url.pathname);
    if (!route) {
      return respond(response, 404, status(404, "NotFound", "no such path"));
    }
    try {
      if (url.searchParams.get("watch") === "true") {
        this.#watch(route, url.searchParams, metadataOnly, response);
      } else if (!route.name && seen.method === "GET") {
        respond(response, 200, this.#list(route, url.searchParams, metadataOnly));
      } else {
        const object = this.#object(seen.method, route, url.searchParams, request, body);
        respond(response, 200, metadataOnly ? partial(object) : object);
      }
    } catch (error) {
      if (!(error instanceof FakeRefusal)) {
        throw error;
      }
      respond(response, error.code, status(error.code, error.reason, error.message));
    }
  }

  #object(
    method: string,
    route: Route,
    query: URLSearchParams,
    request: IncomingMessage,
    text: string,
  ): FakeObject {
    const { collection, subresource } = route;
    const body = (text === "" ? {} : JSON.parse(text)) as FakeObject;
    const name = route.name ?? body.metadata?.name;
    const key = route.namespace ? `${route.namespace}/${name}` : name;
    const placed = (object: FakeObject): FakeObject => ({
      ...object,
      metadata: { ...object.metadata, name, ...(route.namespace ? { namespace: route.namespace } : {}) },
    });
    switch (method) {
      case "GET":
        return this.etcd.get(collection, key);
      case "POST":
        return this.etcd.create(collection, key, placed(body), query.get("fieldManager") ?? undefined);
      case "PUT":
        return this.etcd.update(collection, key, placed(body), subresource);
      case "DELETE":
        return this.etcd.delete(
          collection,
          key,
          (body as { preconditions?: { uid?: string } }).preconditions,
        );
      case "PATCH": {
        if (request.headers["content-type"] === "application/json-patch+json") {
          return this.etcd.patchManagedFields(
            collection,
            key,
            body as unknown as readonly JsonPatchOperation[],
          );
        }
        if (!(request.headers["content-type"] ?? "").startsWith("application/apply-patch")) {
          return this.etcd.patch(collection, key, body, subresource);
        }
        return this.etcd.apply(collection, key, query.get("fieldManager") ?? "", placed(body), subresource);
      }
      default:
        throw new FakeRefusal(405, "MethodNotAllowed", method);
    }
  }

  #list(route: Route, query: URLSearchParams, metadataOnly: boolean): object {
    const [version, start] = (query.get("continue") ?? `${this.etcd.version}:0`).split(":").map(Number);
    if (query.has("continue") && (version ?? 0) < this.etcd.compacted) {
      throw new FakeRefusal(410, "Expired", "the continue token is too old");
    }
    const selected = labelMatcher(query.get("labelSelector"));
    const all = [...this.etcd.collection(route.collection).values()]
      .filter((object) => !route.namespace || object.metadata.namespace === route.namespace)
      .filter((object) => selected(object.metadata.labels));
    const limit = Number(query.get("limit") ?? all.length) || all.length;
    const end = (start ?? 0) + limit;
    return {
      kind: "List",
      apiVersion: route.apiVersion,
      metadata: {
        resourceVersion: String(version),
        ...(end < all.length ? { continue: `${version}:${end}` } : {}),
      },
      // As kube-apiserver answers: metadata of nothing is null.
      items:
        metadataOnly && all.length === 0
          ? null
          : all
              .slice(start, end)
              .map((item) =>
                metadataOnly ? partial(item) : { ...item, kind: undefined, apiVersion: undefined },
              ),
    };
  }

  #watch(route: Route, query: URLSearchParams, metadataOnly: boolean, response: ServerResponse): void {
    const from = Number(query.get("resourceVersion"));
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (from < this.etcd.compacted) {
      response.end(`${JSON.stringify({ type: "ERROR", object: status(410, "Expired", "too old") })}\n`);
      return;
    }
    const { collection, namespace } = route;
    const watch: OpenWatch = { collection, namespace, response, metadataOnly };
    this.#watches.add(watch);
    response.on("close", () => this.#watches.delete(watch));
    for (const event of this.etcd.history) {
      if (event.version > from && isSeen(watch, event)) {
        send(watch, event);
      }
    }
  }

  #notify(event: FakeEvent): void {
    if (this.stalled) {
      return;
    }
    for (const watch of this.#watches) {
      if (isSeen(watch, event)) {
        send(watch, event);
      }
    }
  }
}

function send({ response, metadataOnly }: OpenWatch, { type, object }: FakeEvent): void {
  response.write(`${JSON.stringify({ type, object: metadataOnly ? partial(object) : object })}\n`);
}

function partial({ metadata }: FakeObject): FakeObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
}

function isSeen({ collection, namespace }: OpenWatch, event: FakeEvent): boolean {
  const inside = namespace === undefined || event.object.metadata.namespace === namespace;
  return inside && collection === event.collection;
}

function respond(
  response: ServerResponse,
  code: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(code, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function status(code: number, reason: string, message: string): object {
  return { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
