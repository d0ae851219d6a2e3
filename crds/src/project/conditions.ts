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
  /** Positive, only with references to other projects in variables: all of them are resolved. */
  ReferencesReady: "ReferencesReady",
  /** Positive, only with variables that several projects share: instances have their newest values, or are being rolled to them. */
  VariablesReady: "VariablesReady",
  /** Positive, Git projects only: the last build that was to be published succeeded. */
  BuildSucceeded: "BuildSucceeded",
  /** Positive, databases only: the engine takes writes and holds the replicas it should. */
  DatabaseReady: "DatabaseReady",
  /** Positive, databases with an address outside the cluster only: the address exists. */
  AddressReady: "AddressReady",
  /** Positive, jobs only: the schedule is active. False while paused or closed for deletion. */
  ScheduleActive: "ScheduleActive",
  /** Negative: the last rollout missed its deadline, or its pre-deploy command failed; the version before it still serves. */
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
  // A project without requests: WorkloadAvailable, Progressing
  Sleeping: "Sleeping",
  Waking: "Waking",
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
  // ReferencesReady
  ReferencesResolved: "ReferencesResolved",
  ReferencePending: "ReferencePending",
  ReferenceUnknown: "ReferenceUnknown",
  ReferenceInvalid: "ReferenceInvalid",
  ReferenceCycle: "ReferenceCycle",
  // VariablesReady
  VariablesResolved: "VariablesResolved",
  VariableGroupNotFound: "VariableGroupNotFound",
  VariablesTooLarge: "VariablesTooLarge",
  RolloutQueued: "RolloutQueued",
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
  StartupTimeout: "StartupTimeout",
  Unschedulable: "Unschedulable",
  DeadlineExceeded: "DeadlineExceeded",
  // The pre-deploy command
  RunningPreDeploy: "RunningPreDeploy",
  PreDeployFailed: "PreDeployFailed",
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
