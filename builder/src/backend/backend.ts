/** The interface of what builds images from Dockerfiles: BuildKit or buildah. */

import type { OutputLines } from "../log/writer.ts";

export interface BuildRequest {
  /** Folder that the Dockerfile may copy from. */
  context: string;
  /** Folder with `Dockerfile`, and `Dockerfile.dockerignore` where it replaces the repository's own. */
  dockerfile: string;
  /** Files by the id of the secret. */
  secrets: Record<string, string>;
  args: Record<string, string>;
  /** Commands of the steps, by `<stage> <steps after it>`, where known. */
  commands: Record<string, string>;
  /** Folder to write the image to, as an OCI layout. */
  output: string;
  timeoutMs: number;
  signal?: AbortSignal;
}

/** Receives the progress of a build. */
export interface BuildListener {
  /** Called when a step of the Dockerfile begins, or was found in the cache. */
  step(name: string, cached: boolean): void;
  /** Opens the sink of a step's output; the backend ends it. */
  output(): OutputLines;
}

/** The result of a build. */
export type BuildOutcome =
  | { ok: true }
  | {
      ok: false;
      timedOut: boolean;
      /** Name of the stage that failed, undefined when none did. */
      stage?: string;
      /** The step as its author wrote it. */
      step?: string;
      exitCode?: number;
      /** End of the step's output, or the backend's own error. */
      text: string;
    };

export interface BuilderBackend {
  build(request: BuildRequest, listener: BuildListener): Promise<BuildOutcome>;
  /** Stops every process that the backend started. */
  close(): Promise<void>;
}

/** A backend did not start, or stopped: a fault of the platform. */
export class BackendUnavailable extends Error {
  override name = "BackendUnavailable";
}
