import type { Container } from "@slipway/builder/contract";
import { KubeError } from "@slipway/controller-runtime";

/** Which container's log it is, and of which build. */
export interface LogSource {
  organizationId: string;
  projectId: string;
  buildId: string;
  namespace: string;
  podName: string;
  podUid: string;
  attempt: number;
}

export type BuildOfLog = Pick<LogSource, "organizationId" | "buildId">;

export interface LogStream {
  source: LogSource;
  isStored: boolean;
  /** The container has marked the end of its log, and all of it is stored. */
  isFinal: boolean;
  truncated: boolean;
  /** Last sequence that the ledger has, with all before it. */
  stored: number;
  /** Aborts once the container is known to have terminated: a reading from then on is complete. */
  ended: AbortController;
  stop: AbortController;
  /** Resolves once all lines are in the ledger, or reading has stopped. */
  finished: PromiseWithResolvers<void>;
}

export const keyOf = ({ podUid }: LogSource, container: Container): string => `${podUid}/${container}`;

/** The pod or its node no longer exists, or the container never started. */
export const isGone = (error: unknown): boolean =>
  error instanceof KubeError && (error.status === 404 || error.status === 400);
