import type { Query } from "./paths.ts";

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

/** A command to be run in a container. */
export interface ExecTransportRequest {
  path: string;
  /** Pairs: `command` is repeated for each word. */
  query: readonly (readonly [string, string])[];
  stdin?: string;
  signal?: AbortSignal;
  timeoutMs?: number;
}
