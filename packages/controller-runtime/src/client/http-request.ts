import type { ObjectRef, Resource } from "./types.ts";

/** One HTTP request to the apiserver. */
export interface HttpRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path within the server, such as `/api/v1/pods`. */
  path: string;
  query?: Query;
  body?: string;
  contentType?: string;
  accept?: string;
  signal?: AbortSignal;
  /**
   * Longest wait for headers, that for a connection included, and longest silence within the body, in milliseconds. 0: no
   * limit on the body.
   */
  timeoutMs?: number;
  /**
   * The body has no end, as that of a watch: a connection of its own, and any silence in it is
   * borne. `timeoutMs` is for the headers alone.
   */
  streams?: boolean;
  /** Label of metrics; the method in lower case when absent (`watch` for watches). */
  verb?: string;
}

/** Which command is run, and where. */
export interface ExecAddress {
  path: string;
  /** Pairs: `command` is repeated for each word. */
  query: readonly (readonly [string, string])[];
}

/** A command to be run in a container. */
export interface ExecTransportRequest extends ExecAddress {
  /** As `PodExecOptions` has them. */
  stdin?: string | AsyncIterable<Uint8Array>;
  onStdout?: (chunk: Buffer) => Promise<void> | void;
  signal?: AbortSignal;
  timeoutMs?: number;
}

/** A command whose streams the caller reads and writes. */
export interface ExecStreamRequest extends ExecAddress {
  /** Bytes of the largest message of the apiserver. */
  maxPayload: number;
  /** Until it has accepted. */
  signal?: AbortSignal;
  timeoutMs?: number;
}

/** Query parameters; undefined ones are left out. */
export type Query = Record<string, string | number | boolean | undefined>;

/** The URL path of a collection. @throws TypeError when a namespace is given for a cluster-scoped resource. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root =
    resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  if (!namespace) {
    return `${root}/${resource.plural}`;
  }
  if (!resource.namespaced) {
    throw new TypeError(`${resource.kind} is cluster-scoped; got namespace ${namespace}`);
  }
  return `${root}/namespaces/${encodeURIComponent(namespace)}/${resource.plural}`;
}

/** The URL path of one object or one of its subresources. @throws TypeError when the namespace does not fit. */
export function objectPath(resource: Resource, ref: ObjectRef, subresource?: string): string {
  if (resource.namespaced && !ref.namespace) {
    throw new TypeError(`${resource.kind} ${ref.name} needs a namespace`);
  }
  // `..` would survive the encoding and name another object.
  if (!ref.name || ref.name === "." || ref.name === "..") {
    throw new TypeError(`${resource.kind} needs a name`);
  }
  const path = `${collectionPath(resource, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource ? `${path}/${subresource}` : path;
}

/** `?a=1&b=2`, or nothing. */
export function queryString(query: Query | undefined): string {
  if (!query) {
    return "";
  }
  const parts = Object.entries(query)
    .filter(
      (entry): entry is [string, string | number | boolean] => entry[1] !== undefined && entry[1] !== "",
    )
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`);
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}
