/** Events that are observed in the state of objects. Whatever the ledger records itself (deployments, builds, runs), it makes events of. Pure. */

import { type Condition, findCondition } from "@slipway/controller-runtime";
import {
  type Backup,
  type DomainClaim,
  organizationOfNamespace,
  type Project,
  type ProjectReason,
} from "@slipway/crds";
import type { NotificationEvent } from "@slipway/ledger";

/** Reasons that say of an application's instances that they end again and again. */
const CRASHING: readonly ProjectReason[] = ["ContainerCrashing", "OutOfMemory"];

/** Of an application that comes up between its crashes, one event is enough for so long. */
const CRASH_LOOP_QUIET_SECONDS = 3_600;

const MESSAGE_MAX_LENGTH = 1_024;

/** What is observed in a project's status: instances that crash, and occurrences of a schedule that were missed. */
export function eventsOfProject(project: Project): NotificationEvent[] {
  const organizationId = organizationOfNamespace(project.metadata.namespace ?? "");
  return organizationId === undefined
    ? []
    : [...crashLoop(project, organizationId), ...missedRuns(project, organizationId)];
}

function crashLoop({ metadata, status }: Project, organizationId: string): NotificationEvent[] {
  const condition = findCondition(status?.conditions, "WorkloadAvailable");
  if (condition?.status !== "False" || !CRASHING.some((reason) => reason === condition.reason)) {
    return [];
  }
  const { lastTermination: last } = status ?? {};
  return [
    {
      organizationId,
      projectId: metadata.name,
      type: "project.crash_loop",
      key: `${metadata.uid}/${condition.lastTransitionTime}`,
      occurredAt: new Date(condition.lastTransitionTime),
      quietSeconds: CRASH_LOOP_QUIET_SECONDS,
      data: {
        reason: condition.reason,
        message: condition.message,
        ...(last ? { instance: last.instance, exit_code: last.exitCode, restarts: last.restarts } : {}),
      },
    },
  ];
}

/** Those of one reason that were counted in one write are one event. */
function missedRuns({ metadata, status }: Project, organizationId: string): NotificationEvent[] {
  return (status?.job?.missedReasons ?? []).map(({ reason, count, lastScheduledAt }) => ({
    organizationId,
    projectId: metadata.name,
    type: "run.missed",
    key: `${metadata.uid}/${reason}/${count}`,
    occurredAt: new Date(lastScheduledAt),
    data: { reason, scheduled_at: lastScheduledAt, missed: count },
  }));
}

/** The end of a backup. */
export function eventsOfBackup({ metadata, spec, status }: Backup): NotificationEvent[] {
  const organizationId = organizationOfNamespace(metadata.namespace ?? "");
  const { phase, finishedAt, startedAt, sizeBytes, message } = status ?? {};
  if (
    organizationId === undefined ||
    finishedAt === undefined ||
    (phase !== "succeeded" && phase !== "failed")
  ) {
    return [];
  }
  return [
    {
      organizationId,
      projectId: spec.projectRef.name,
      type: phase === "succeeded" ? "backup.completed" : "backup.failed",
      key: `${metadata.uid}`,
      occurredAt: new Date(finishedAt),
      data: {
        backup_id: metadata.name,
        trigger: spec.trigger,
        started_at: startedAt,
        finished_at: finishedAt,
        ...(phase === "succeeded"
          ? { size_bytes: sizeBytes }
          : { message: message?.slice(0, MESSAGE_MAX_LENGTH) }),
      },
    },
  ];
}

/** What became of the certificate of a custom domain: it is in place, or could not be issued or renewed. */
export function eventsOfClaim({ metadata, spec, status }: DomainClaim): NotificationEvent[] {
  if (spec.kind !== "custom") {
    return [];
  }
  const about = { organizationId: spec.organization, projectId: spec.projectRef.name };
  const { hostname } = spec;
  const condition = findCondition(status?.conditions, "CertificateReady");
  const failure = status?.certificateFailure;
  return [
    ...(condition?.status === "True"
      ? [
          {
            ...about,
            type: "certificate.issued" as const,
            key: `${metadata.uid}/${condition.lastTransitionTime}`,
            occurredAt: new Date(condition.lastTransitionTime),
            data: { hostname },
          },
        ]
      : []),
    ...(failure
      ? [
          {
            ...about,
            type: "certificate.failed" as const,
            key: `${metadata.uid}/${failure.since}`,
            occurredAt: new Date(failure.since),
            // What the issuer says is of the platform's servers: it stays in the claim.
            data: { hostname, reason: "not_issued", is_renewal: isRenewal(failure.since, condition) },
          },
        ]
      : []),
  ];
}

/** Whether a certificate was in place when one failed: a failure may be recorded for a while after the one that followed was issued. */
function isRenewal(since: string, issued: Condition | undefined): boolean {
  return issued?.status === "True" && Date.parse(since) >= Date.parse(issued.lastTransitionTime);
}
