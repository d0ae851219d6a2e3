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
  stdin?: string | AsyncIterable<Uint8Array>;
  /** Receives what the command writes, in order, in place of `ExecResult.stdout`; no more is read until it resolves. */
  onStdout?: (chunk: Buffer) => Promise<void> | void;
}

/** Of a command whose streams the caller reads and writes. */
export interface PodExecStreamOptions extends CallOptions {
  container: string;
  /** Program and arguments. */
  command: readonly string[];
  /** Whether it has an input. */
  stdin: boolean;
  /** Whether it has a terminal: then it has one output, and can be resized. */
  tty: boolean;
  /** Bytes of the largest message of the apiserver. */
  maxPayload: number;
}

/** How a patch is merged. */
export type PatchType = "merge" | "json" | "strategic";
