/** What makes images from Dockerfiles. */

import type { OutputLines } from "../log/writer.ts";

export interface BuildRequest {
  /** Folder that the Dockerfile may copy from. */
  context: string;
  /** Folder with `Dockerfile`, and `Dockerfile.dockerignore` where the repository's own does not count. */
  dockerfile: string;
  /** Files by the id of the secret. */
  secrets: Record<string, string>;
  args: Record<string, string>;
  /** What steps run, by `<stage> <steps after it>`, where that is known. */
  commands: Record<string, string>;
  /** Where the image goes, as an OCI layout. */
  output: string;
  timeoutMs: number;
  signal?: AbortSignal;
}

/** Told while it builds. */
export interface BuildListener {
  /** A step of the Dockerfile begins, or was found in the cache. */
  step(name: string, cached: boolean): void;
  /** Where a step's output goes; ended by the engine. */
  output(): OutputLines;
}

/** How it ended. */
export type BuildOutcome =
  | { ok: true }
  | {
      ok: false;
      timedOut: boolean;
      /** Name of the stage that failed, undefined when none did. */
      stage?: string;
      /** The step as people wrote it. */
      step?: string;
      exitCode?: number;
      /** End of the step's output, or what the engine said. */
      text: string;
    };

export interface Engine {
  build(request: BuildRequest, listener: BuildListener): Promise<BuildOutcome>;
  /** Ends whatever it has started. */
  close(): Promise<void>;
}

/** An engine did not start, or has ended: the platform's fault. */
export class EngineUnavailable extends Error {
  override name = "EngineUnavailable";
}
