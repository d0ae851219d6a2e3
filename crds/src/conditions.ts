import { z } from "zod";
import { matching, observedGeneration, text, timestamp } from "./fields.ts";
import { mapOf } from "./rule.ts";

/** `metav1.Condition`. */
export const condition = z
  .strictObject({
    type: matching(
      /^[A-Za-z][A-Za-z0-9]*$/,
      "must be a condition type in CamelCase",
      64,
      "What is reported.",
    ),
    status: z.enum(["True", "False", "Unknown"]).describe("Whether it holds."),
    observedGeneration: observedGeneration("Generation of the resource that this was reported for."),
    lastTransitionTime: timestamp("When status changed last."),
    reason: matching(/^[A-Za-z][A-Za-z0-9_]*$/, "must be a reason in CamelCase", 128, "Why, for machines."),
    message: text(0, 2048, "Why, for people. It never holds a secret."),
  })
  .describe("One observation about the resource.");
export type Condition = z.output<typeof condition>;

/** A `conditions` field: one entry per type. */
export const conditions = mapOf(z.array(condition).max(24), "type").describe("Observations, one per type.");

/** Reasons that a condition of any kind may have, of what befalls every reconcile. */
export const commonReasons = {
  /** The organization's namespace is being deleted. */
  NamespaceTerminating: "NamespaceTerminating",
  /** The apiserver refuses what is written; the message says why. */
  ApiRefused: "ApiRefused",
  TimedOut: "TimedOut",
  /** A defect: the operator's log has the details. */
  InternalError: "InternalError",
  /** The node's clock is too far from the apiserver's. */
  ClockSkew: "ClockSkew",
  /** Somebody changed what is written at the same moment; it is tried again. */
  Conflict: "Conflict",
  /** A child's name is taken by an object that is not ours. */
  ChildConflict: "ChildConflict",
  /** A former child is being deleted. */
  ChildTerminating: "ChildTerminating",
} as const;
export type CommonReason = keyof typeof commonReasons;

/**
 * Condition types of a Project. "Positive" ones are good when True and always present from the first reconcile on;
 * "negative" ones are bad when True and absent while there is nothing to report.
 */
export const projectConditions = {
  /** Positive, summary: everything that the spec requests exists and serves. What `kubectl wait` should wait for. */
  Ready: "Ready",
  /** Neutral: True while the project is on its way to a new state (rollout, scaling, resuming). */
  Progressing: "Progressing",
  /** Positive: the spec fits the plan catalog and names only Secrets that exist. */
  Accepted: "Accepted",
  /** Positive: enough instances are ready to serve. False also while paused (reason Paused). */
  WorkloadAvailable: "WorkloadAvailable",
  /** Positive, public HTTP projects only: the default domain is claimed and its route is in place. */
  DomainReady: "DomainReady",
  /** Positive, only with custom domains: every one of them is verified, routed and certified. */
  CustomDomainsReady: "CustomDomainsReady",
  /** Positive, only with persistent storage: every volume is bound at the requested size. */
  StorageReady: "StorageReady",
  /** Positive, only with awsCredentialsRef: the platform holds a login to the registry that has not expired. */
  RegistryReady: "RegistryReady",
  /** Positive, Git projects only: the last build that was to be published succeeded. */
  BuildSucceeded: "BuildSucceeded",
  /** Positive, databases only: the engine takes writes and holds the replicas it should. */
  DatabaseReady: "DatabaseReady",
  /** Positive, databases with an address outside the cluster only: the address exists. */
  AddressReady: "AddressReady",
  /** Positive, jobs only: the schedule is active. False while paused or closed for deletion. */
  ScheduleActive: "ScheduleActive",
  /** Negative: the last rollout missed its deadline; the version before it still serves. */
  RolloutFailed: "RolloutFailed",
  /** Negative: the organization's or the plan's limits leave no quota for the project. */
  LimitExceeded: "LimitExceeded",
  /** Neutral, Analytics only: True while a plan change runs, False with reason PlanChangeFailed after one failed. */
  PlanChanging: "PlanChanging",
  /** Neutral: True while the project is being deleted; its message says what is waited for. */
  Terminating: "Terminating",
} as const;
export type ProjectCondition = keyof typeof projectConditions;

/** Reasons of a Project's conditions; the same names serve as event reasons. */
export const projectReasons = {
  // Ready, WorkloadAvailable
  Ready: "Ready",
  Available: "Available",
  Unavailable: "Unavailable",
  PartlyAvailable: "PartlyAvailable",
  Paused: "Paused",
  // Progressing
  Creating: "Creating",
  PullingImage: "PullingImage",
  RollingOut: "RollingOut",
  Scaling: "Scaling",
  Resuming: "Resuming",
  Pausing: "Pausing",
  Settled: "Settled",
  // Accepted
  Accepted: "Accepted",
  UnknownPlan: "UnknownPlan",
  PlanIncompatible: "PlanIncompatible",
  FeatureNotInPlan: "FeatureNotInPlan",
  SecretNotFound: "SecretNotFound",
  TypeNotSupported: "TypeNotSupported",
  FeatureNotSupported: "FeatureNotSupported",
  NotInOrganizationNamespace: "NotInOrganizationNamespace",
  ImageOfOthers: "ImageOfOthers",
  NamespaceNotGuarded: "NamespaceNotGuarded",
  LedgerUnavailable: "LedgerUnavailable",
  DomainReserved: "DomainReserved",
  // RegistryReady
  RegistryLoggedIn: "RegistryLoggedIn",
  RegistryLoginFailed: "RegistryLoginFailed",
  // LimitExceeded
  FreeLimitReached: "FreeLimitReached",
  PlanCapacityReached: "PlanCapacityReached",
  QuotaExceeded: "QuotaExceeded",
  // Failures of a workload
  ImagePullFailed: "ImagePullFailed",
  ContainerCrashing: "ContainerCrashing",
  ContainerInvalid: "ContainerInvalid",
  InstanceRefused: "InstanceRefused",
  OutOfMemory: "OutOfMemory",
  ProbeFailing: "ProbeFailing",
  Unschedulable: "Unschedulable",
  DeadlineExceeded: "DeadlineExceeded",
  // Domains
  DomainAssigned: "DomainAssigned",
  DomainPending: "DomainPending",
  DomainTaken: "DomainTaken",
  DomainUnverified: "DomainUnverified",
  DomainExpired: "DomainExpired",
  CertificatePending: "CertificatePending",
  // Storage, databases, builds, jobs, plan changes
  VolumeBound: "VolumeBound",
  VolumePending: "VolumePending",
  VolumeResizing: "VolumeResizing",
  VolumeNotExpandable: "VolumeNotExpandable",
  VolumeQuotaExceeded: "VolumeQuotaExceeded",
  DatabaseAvailable: "DatabaseAvailable",
  Bootstrapping: "Bootstrapping",
  FailingOver: "FailingOver",
  PrimaryMissing: "PrimaryMissing",
  ReplicasMissing: "ReplicasMissing",
  SwitchingOver: "SwitchingOver",
  Recovering: "Recovering",
  RecoveryRefused: "RecoveryRefused",
  DiskFull: "DiskFull",
  CredentialsPending: "CredentialsPending",
  AddressAssigned: "AddressAssigned",
  AddressPending: "AddressPending",
  BuildPending: "BuildPending",
  BuildSucceeded: "BuildSucceeded",
  BuildFailed: "BuildFailed",
  Scheduled: "Scheduled",
  ScheduleClosed: "ScheduleClosed",
  PlanChangeInProgress: "PlanChangeInProgress",
  PlanChangeFailed: "PlanChangeFailed",
  // Backups
  Restoring: "Restoring",
  RestoreFailed: "RestoreFailed",
  BackupNotFound: "BackupNotFound",
  // Deletion
  ReleasingDomain: "ReleasingDomain",
  DeletingChildren: "DeletingChildren",
  JobRunsPending: "JobRunsPending",
} as const;
export type ProjectReason = keyof typeof projectReasons;
/** What conditions of a Project may say. */
export interface ProjectConditionCatalog {
  type: ProjectCondition;
  reason: ProjectReason;
}

/** Condition types of a DomainClaim. */
export const domainClaimConditions = {
  /** Positive, summary: traffic for the hostname may reach the project. */
  Ready: "Ready",
  /** Positive: ownership is proved; always True for default domains and subdomains of the platform's zone. */
  Verified: "Verified",
  /** Positive: the ingress routes the hostname. */
  Routed: "Routed",
  /** Positive, custom domains only: the ingress holds a certificate for the hostname. */
  CertificateReady: "CertificateReady",
} as const;
export type DomainClaimCondition = keyof typeof domainClaimConditions;

/** Reasons of a DomainClaim's conditions. */
export const domainClaimReasons = {
  Ready: "Ready",
  PlatformZone: "PlatformZone",
  OwnershipProved: "OwnershipProved",
  VouchedByOperator: "VouchedByOperator",
  TxtRecordMissing: "TxtRecordMissing",
  TxtRecordWrong: "TxtRecordWrong",
  LookupFailed: "LookupFailed",
  Routed: "Routed",
  RoutePending: "RoutePending",
  CertificateIssued: "CertificateIssued",
  CertificatePending: "CertificatePending",
  ProjectGone: "ProjectGone",
  Expired: "Expired",
  ProvedByAnother: "ProvedByAnother",
  ProofMissing: "ProofMissing",
} as const;
export type DomainClaimReason = keyof typeof domainClaimReasons;
/** What conditions of a DomainClaim may say. */
export interface DomainClaimConditionCatalog {
  type: DomainClaimCondition;
  reason: DomainClaimReason;
}

/** Condition types of a JobRun. */
export const jobRunConditions = {
  /** Positive: the run has the project's slot and its pod may start. False once it has been refused, for good. */
  Admitted: "Admitted",
  /** Positive: the container ran and has ended, whatever its exit code. */
  Finished: "Finished",
  /** Positive: the charge is in the ledger and was read back; only then the finalizers are removed. */
  Charged: "Charged",
  /** Neutral: True from the first cancellation request until the run has ended. */
  Cancelling: "Cancelling",
  /** Negative: the end of the process could not be confirmed now, so the run cannot be cancelled. */
  CancelUnsafe: "CancelUnsafe",
} as const;
export type JobRunCondition = keyof typeof jobRunConditions;

/** Reasons of a JobRun's conditions. */
export const jobRunReasons = {
  Admitted: "Admitted",
  // Refused; those of missed occurrences as well, see missedReasons
  Overlap: "Overlap",
  Late: "Late",
  NotCreated: "NotCreated",
  OperatorUnavailable: "OperatorUnavailable",
  NotAccepted: "NotAccepted",
  Paused: "Paused",
  ScheduleClosed: "ScheduleClosed",
  ProjectGone: "ProjectGone",
  Running: "Running",
  Succeeded: "Succeeded",
  Failed: "Failed",
  DeadlineExceeded: "DeadlineExceeded",
  Cancelled: "Cancelled",
  NeverStarted: "NeverStarted",
  ChargePending: "ChargePending",
  ChargeRecorded: "ChargeRecorded",
  NothingToCharge: "NothingToCharge",
  CancelRequested: "CancelRequested",
  NodeUnreachable: "NodeUnreachable",
  ChargeDiffers: "ChargeDiffers",
  ChargeRefused: "ChargeRefused",
} as const;
export type JobRunReason = keyof typeof jobRunReasons;
/** What conditions of a JobRun may say. */
export interface JobRunConditionCatalog {
  type: JobRunCondition;
  reason: JobRunReason;
}

/** Why an occurrence of a schedule was missed: counted one by one in a project's status and metrics. */
export const missedReasons = [
  /** Another run was active at its minute. */
  "Overlap",
  /** Its Job came too late to be admitted. */
  "Late",
  /** The cluster made no Job for it in time. */
  "NotCreated",
  /** No operator led while it could have been admitted. */
  "OperatorUnavailable",
  /** The project was not accepted: its plan, a Secret or the organization's namespace was missing. */
  "NotAccepted",
  /** It was admitted, but its container never started: no usage, no run. */
  "NeverStarted",
] as const;
export type MissedReason = (typeof missedReasons)[number];

/** Condition types of a Build. */
export const buildConditions = {
  /** Positive: the image is built and pushed. Unknown while the build runs. */
  Succeeded: "Succeeded",
  /** Positive: the project serves the image. Unknown until it does, or is known not to. */
  Published: "Published",
  /** Positive, summary: all is well with the build, and it has ended. */
  Ready: "Ready",
} as const;
export type BuildCondition = keyof typeof buildConditions;

/** Reasons of a Build's conditions. */
export const buildReasons = {
  Pending: "Pending",
  // Ready, until it has ended
  Queued: "Queued",
  Waiting: "Waiting",
  ClearingAway: "ClearingAway",
  Building: "Building",
  KeepingLog: "KeepingLog",
  Publishing: "Publishing",
  // Ended, or Succeeded before it is published
  Pushed: "Pushed",
  Failed: "Failed",
  Superseded: "Superseded",
  Published: "Published",
  PublishFailed: "PublishFailed",
  PublishTimeout: "PublishTimeout",
} as const;
export type BuildReason = keyof typeof buildReasons;
/** What conditions of a Build may say. */
export interface BuildConditionCatalog {
  type: BuildCondition;
  reason: BuildReason;
}

/** Condition types of a Backup. */
export const backupConditions = {
  /** Positive, summary: the backup is stored and can be restored. False for good once it has failed. */
  Ready: "Ready",
  /** Positive, only once a restore test was requested: the newest one found all that is in the backup. Unknown while it runs. */
  Verified: "Verified",
} as const;
export type BackupCondition = keyof typeof backupConditions;

/** Reasons of a Backup's conditions. */
export const backupReasons = {
  Stored: "Stored",
  Running: "Running",
  // Waiting
  AnotherActive: "AnotherActive",
  DatabaseUnavailable: "DatabaseUnavailable",
  // Failed for good
  ProjectGone: "ProjectGone",
  Paused: "Paused",
  EngineNotSupported: "EngineNotSupported",
  BackupsDisabled: "BackupsDisabled",
  DumpFailed: "DumpFailed",
  StoreFailed: "StoreFailed",
  // The store, for a moment
  StoreUnavailable: "StoreUnavailable",
  StoreRefused: "StoreRefused",
  DeadlineExceeded: "DeadlineExceeded",
  // Verified
  Verifying: "Verifying",
  ContentsEqual: "ContentsEqual",
  ContentsDiffer: "ContentsDiffer",
  LoadFailed: "LoadFailed",
  DataDamaged: "DataDamaged",
  ImageMissing: "ImageMissing",
  // Deletion
  DeletingData: "DeletingData",
} as const;
export type BackupReason = keyof typeof backupReasons;
/** What conditions of a Backup may say. */
export interface BackupConditionCatalog {
  type: BackupCondition;
  reason: BackupReason;
}

/** Condition types of a GitConnection. */
export const gitConnectionConditions = {
  /** Positive, summary: the server accepted the credential at the last request. False for good once it is revoked. */
  Ready: "Ready",
  /** Positive, only once revoked: no hook of the platform is left at the server. */
  CleanedUp: "CleanedUp",
} as const;
export type GitConnectionCondition = keyof typeof gitConnectionConditions;

/** Reasons of a GitConnection's conditions. */
export const gitConnectionReasons = {
  CredentialTaken: "CredentialTaken",
  CredentialRefused: "CredentialRefused",
  Revoked: "Revoked",
  HooksRemain: "HooksRemain",
} as const;
export type GitConnectionReason = keyof typeof gitConnectionReasons;
/** What conditions of a GitConnection may say. */
export interface GitConnectionConditionCatalog {
  type: GitConnectionCondition;
  reason: GitConnectionReason;
}
