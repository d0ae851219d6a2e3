/** Ports of the jobrun controller other than the cluster: the ledger, runs' logs, and their samples. */

import type { JobRun, JobRunPhase } from "@slipway/crds";

/** CPU and memory of a run, as its status has them. */
export type RunMetrics = NonNullable<NonNullable<JobRun["status"]>["metrics"]>;

/** What the ledger keeps beside a run's charge: its metrics, and the exit code of a one-off run. */
export type KeptMetrics = RunMetrics & { exitCode?: number };

/** States in which a run has ended. */
export type EndPhase = Exclude<JobRunPhase, "running">;

/** A run that has ended, with its charge, as the ledger keeps it. Money is decimal text in BRL cents. */
export interface ChargedRun {
  organization_id: string;
  project_id: string;
  project_uid: string;
  id: string;
  trigger: "schedule" | "manual";
  scheduled_at: Date;
  started_at: Date;
  finished_at: Date;
  billed_until: Date;
  status: EndPhase;
  billed_minutes: number;
  plan: string;
  price_per_minute: string;
  amount: string;
  metrics: KeptMetrics | null;
}

/**
 * The result for one run: `already` when the ledger had it, `differs` when the ledger had it with other billing fields, which
 * stay, `refused` when it breaks a rule of the ledger: nothing is charged then.
 */
export interface RecordedRun {
  id: string;
  organization_id: string;
  outcome: "recorded" | "already" | "differs" | "refused";
  /** Which fields differ, or which rule it is. */
  reason?: string;
}

/** Where charges are kept. */
export interface RunLedger {
  /**
   * Records runs and their charges in one transaction, and reads them back. Recording twice changes nothing.
   * @throws when the ledger did not answer: what was recorded is unknown then
   */
  record(rows: ChargedRun[]): Promise<readonly RecordedRun[]>;
}

/** A run whose log is to be archived. */
export interface RunLogSource {
  organizationId: string;
  namespace: string;
  projectId: string;
  runId: string;
  scheduledAt: Date;
  podName: string;
}

/** Archives the end of a run's log, so that it outlives the pod. */
export interface RunLogs {
  /** `unavailable`: the log does not exist any more. @throws when it should be tried again */
  archive(run: RunLogSource, signal: AbortSignal): Promise<"stored" | "unavailable">;
  /**
   * Begins to read the log of a container that runs, and continues until it has ended.
   * @param signal ends it
   * @returns once it is open: lines that are written from then on are read
   * @throws when it cannot be opened
   */
  follow(run: RunLogSource, signal: AbortSignal): Promise<FollowedLog>;
}

/** A log that is read while its container writes it: its node may remove it soon after the end. */
export interface FollowedLog {
  /** Resolves once the container has ended, or reading has failed. Never rejects. */
  readonly ended: Promise<void>;
  /** Stores the end of what was read. `unavailable`: nothing was. @throws when it should be tried again */
  store(): Promise<"stored" | "unavailable">;
}

/** A run whose container is to be sampled. */
export interface SampledRun {
  /** The JobRun's uid. */
  key: string;
  nodeName: string;
  namespace: string;
  podName: string;
  podUid: string;
  startedAt: Date;
  /** What an operator before this one had measured. */
  before?: RunMetrics;
}

/** Samples CPU and memory of running containers. Every call returns immediately. */
export interface RunSamples {
  /** Begins to sample; does nothing for a run that is followed already. */
  follow(run: SampledRun): void;
  /** The usage so far, `collecting`; undefined for a run that is not followed or has no sample yet. */
  read(key: string): RunMetrics | undefined;
  /**
   * The final metrics: `available` or `unavailable`. May be called again.
   * @param window when the run ran, and the metrics in its status: all that is known of one that is not followed
   */
  finish(key: string, window: { startedAt: Date; finishedAt: Date; before?: RunMetrics }): RunMetrics;
  /** Drops the samples of a run. */
  forget(key: string): void;
}
