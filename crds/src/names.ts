import { createHash } from "node:crypto";

/** API group of every Slipway resource. */
export const GROUP = "slipway.dev";
/** The version that is stored, and that the platform itself reads and writes. */
export const VERSION = "v1alpha1";
/**
 * All that are served. They have one schema, so that each object is the same in all: Kubernetes converts by changing `apiVersion` alone.
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/
 */
export const SERVED_VERSIONS = [VERSION, "v1beta1"] as const;
/** `apiVersion` of every Slipway resource. */
export const API_VERSION = `${GROUP}/${VERSION}`;

/** Namespace and release in which the chart installs Slipway itself. */
export const SYSTEM_NAMESPACE = "slipway-system";
/** Every organization's namespace begins with this. */
export const ORGANIZATION_NAMESPACE_PREFIX = "slipway-org-";

/** Labels on objects that Slipway makes. */
export const labels = {
  managedBy: "app.kubernetes.io/managed-by",
  /** Organization id; on namespaces and children. */
  organization: `${GROUP}/organization`,
  /** Project id; on every child of a project, its pods too. */
  project: `${GROUP}/project`,
  /** Project type; on every child of a project. */
  type: `${GROUP}/type`,
  /** `system` or `organization` on namespaces; `primary` or `replica` on the pods of databases. */
  role: `${GROUP}/role`,
  /** Backup that Jobs and pods make, load or erase. They carry no project's label: that would make them a member of its database. */
  backup: `${GROUP}/backup`,
  /** Project for which a pod pulls an image; such a pod is no instance, so it carries no project's label. */
  imagePull: `${GROUP}/image-pull`,
  /** Project whose pre-deploy command a Job and its pod run; such a pod is no instance, so it carries no project's label. */
  preDeploy: `${GROUP}/pre-deploy`,
  /** Project in whose image a Job and its pod run a command once; such a pod is no instance, so it carries no project's label. */
  oneOffRun: `${GROUP}/one-off-run`,
  /** Record of a deleted project: on what is kept of it. It carries no project's label: that would make it a child of one of the same id. */
  deletedProject: `${GROUP}/deleted-project`,
  /** Variable group that `/v1` created a Secret for. */
  variableGroup: `${GROUP}/variable-group`,
  /** Id of a webhook; on the Secret with what its deliveries are signed with. */
  webhook: `${GROUP}/webhook`,
  /** Log drain that `/v1` created a Secret for. */
  logDrain: `${GROUP}/log-drain`,
} as const;

/**
 * Label of a Secret with values of references, by the id of the database whose password is among them: the keyed hash of the password,
 * as `status.database.credentialsHash` has it.
 */
export const passwordLabel = (databaseId: string): string => `${PASSWORD_LABEL_PREFIX}${databaseId}`;

/** What such labels begin with. */
export const PASSWORD_LABEL_PREFIX = `passwords.${GROUP}/`;

/** Value of `labels.managedBy`. */
export const MANAGED_BY = "slipway";

/** Annotations on objects that Slipway makes. */
export const annotations = {
  /** On an organization's namespace once every guard of it is in place. */
  guarded: `${GROUP}/guarded`,
  /** On a DomainClaim: the platform's operator vouches for the hostname, whose TXT record cannot be resolved. */
  verifiedByOperator: `${GROUP}/verified-by-operator`,
  /** On a Secret with environment variables: where each stood in the list that `/v1` was sent, in the order of the names. */
  envOrder: `${GROUP}/env-order`,
  /** On env Secrets: bytes of all names and values, so that nobody need read them to know. */
  envBytes: `${GROUP}/env-bytes`,
  /**
   * On every custom resource that a traced call to `/v1` wrote: `traceparent` of that call, whose trace the reconcile that acts
   * on it goes on with.
   */
  traceparent: `${GROUP}/traceparent`,
  /** On the operator's Leases: how many shards the holder knows of. */
  shards: `${GROUP}/shards`,
  /**
   * On a volume claim of a database: since when a live primary without it has had every acknowledged write; an RFC 3339 moment. It
   * is deleted a grace period after that.
   */
  unusedSince: `${GROUP}/unused-since`,
  /** On a volume claim of a database, with any value: the operator does not delete it before the project itself is deleted. */
  keep: `${GROUP}/keep`,
  /**
   * On a Project that is a MariaDB group which the operator refuses to go on with: `<ordinal>/<uuid>/<seqno>`, the member that it is
   * to go on from, and the position beyond which everything is given up. Used once, and taken off.
   */
  acceptDataLoss: `${GROUP}/accept-data-loss`,
  /** On a Project that sleeps: `status.sleep.id` of the sleep that is to end. The activator writes it when a request has come. */
  wakeRequested: `${GROUP}/wake-requested`,
  /** On the slice by which the ingress reaches the activator for a project: the hosts that it routes, separated by commas. */
  routedHosts: `${GROUP}/routed-hosts`,
  /** On the pods' template: `spec.restartedAt`. */
  restartedAt: `${GROUP}/restarted-at`,
  /** On the pods' template, and so on pods: hash of all that they are made from; see `status.deployments`. */
  settingsHash: `${GROUP}/settings-hash`,
  /**
   * On a Secret whose name contains the hash of its content, once a spec is to name it again: an RFC 3339 moment. What nothing names is
   * deleted ten minutes after it.
   */
  reusedAt: `${GROUP}/reused-at`,
  /** On a job's CronJob template, and so on its Jobs: the plan that they are sized for. */
  plan: `${GROUP}/plan`,
  /** On a Job, set as it is admitted: price of a minute in BRL cents, which the run keeps. */
  pricePerMinute: `${GROUP}/price-per-minute`,
  /** On a Job, set as it is admitted: when that was; an RFC 3339 moment. */
  admittedAt: `${GROUP}/admitted-at`,
  /** On a database's Project: the last occurrence of its schedule of backups that was dealt with; an RFC 3339 moment. */
  backupScheduledAt: `${GROUP}/backup-scheduled-at`,
  /** On a database's Project: the last occurrence of its schedule of restore tests that was dealt with. */
  backupVerifyScheduledAt: `${GROUP}/backup-verify-scheduled-at`,
  /** On a Deployment of the platform that a restore has stopped: how many replicas it is to have again. */
  replicasBeforeRestore: `${GROUP}/replicas-before-restore`,
  /** On a PersistentVolume whose reclaim policy was `Delete`: the DeletedProject for which it is `Retain`. */
  retainedFor: `${GROUP}/retained-for`,
  /** On a Project that is undeleted, until all of it is as it was: the DeletedProject that it is created from. It is not reconciled before. */
  undeletedFrom: `${GROUP}/undeleted-from`,
} as const;

/** Annotations in which earlier versions kept what is in fields of the spec now. The operator converts them; nothing writes them. */
export const formerAnnotations = {
  /** On a Project: `spec.updatedAt`. On a Build: `spec.requestedAt`. */
  updatedAt: `${GROUP}/updated-at`,
  /** On a Project: `<spec.rollback.at> <spec.rollback.digest>`. */
  rolledBack: `${GROUP}/rolled-back`,
  /** On a Project: `<spec.sourceRevision.number>:<spec.sourceRevision.hash>`. */
  sourceRevision: `${GROUP}/source-revision`,
} as const;

/** On a DomainClaim of an earlier version: `spec.contenders`, comma-separated. */
export const FORMER_CONTENDERS = `${GROUP}/wanted-by`;

/** One field manager per writer. */
export const fieldManagers = {
  project: "slipway-project",
  organization: "slipway-organization",
  domainClaim: "slipway-domainclaim",
  jobRun: "slipway-jobrun",
  build: "slipway-build",
  backup: "slipway-backup",
  gitConnection: "slipway-gitconnection",
  deletedProject: "slipway-deletedproject",
  api: "slipway-api",
  recovery: "slipway-recovery",
  activator: "slipway-activator",
  budget: "slipway-budget",
} as const;

/** Finalizers, one per kind whose end needs work. */
export const finalizers = {
  project: `${GROUP}/project`,
  jobRun: `${GROUP}/jobrun`,
  build: `${GROUP}/build`,
  backup: `${GROUP}/backup`,
  domainClaim: `${GROUP}/domainclaim`,
  gitConnection: `${GROUP}/gitconnection`,
  deletedProject: `${GROUP}/deletedproject`,
} as const;

/** Plural names, as they are in API paths and RBAC rules. */
export const plurals = {
  Project: "projects",
  JobRun: "jobruns",
  Build: "builds",
  Backup: "backups",
  DomainClaim: "domainclaims",
  GitConnection: "gitconnections",
  DeletedProject: "deletedprojects",
  VariableGroup: "variablegroups",
  LogDrain: "logdrains",
} as const;

/** Draws a whole number in `[0, below)`. Given in, so that names can be tested. */
export type RandomInt = (below: number) => number;

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

function randomText(length: number, random: RandomInt): string {
  let text = "";
  for (let i = 0; i < length; i += 1) {
    text += ALPHABET[random(ALPHABET.length)];
  }
  return text;
}

/** A new project id: `p` and 19 characters of `[a-z0-9]`, 98 bits of chance. */
export function newProjectId(random: RandomInt): string {
  return `p${randomText(19, random)}`;
}

/** A new organization id: `o` and 15 characters of `[a-z0-9]`. */
export function newOrganizationId(random: RandomInt): string {
  return `o${randomText(15, random)}`;
}

/** A new Git connection's id: `g` and 19 characters of `[a-z0-9]`. */
export function newGitConnectionId(random: RandomInt): string {
  return `g${randomText(19, random)}`;
}

/** A new variable group's id: `v` and 19 characters of `[a-z0-9]`. */
export function newVariableGroupId(random: RandomInt): string {
  return `v${randomText(19, random)}`;
}

/** A new webhook's id: `w` and 19 characters of `[a-z0-9]`. */
export function newWebhookId(random: RandomInt): string {
  return `w${randomText(19, random)}`;
}

/** The form of a webhook's id. */
export const WEBHOOK_ID = /^w[a-z0-9]{19}$/;

/** Name of the Secret, in its organization's namespace, with what a webhook's deliveries are signed with. */
export const webhookSecretName = (webhookId: string): string => `${webhookId}-webhook`;

/** Keys of that Secret: the secret, and until a moment the one before it. */
export const webhookSecretKeys = {
  current: "current",
  previous: "previous",
  previousUntil: "previousUntil",
} as const;

/** A new id of a recipient of e-mail: `e` and 19 characters of `[a-z0-9]`. */
export function newEmailRecipientId(random: RandomInt): string {
  return `e${randomText(19, random)}`;
}

/** The form of such an id. */
export const EMAIL_RECIPIENT_ID = /^e[a-z0-9]{19}$/;

/** A new log drain's id: `l` and 19 characters of `[a-z0-9]`. */
export function newLogDrainId(random: RandomInt): string {
  return `l${randomText(19, random)}`;
}

/** The form of an organization's id. */
export const ORGANIZATION_ID = /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/;
/** The form of a project's id (the `metadata.name` of a Project): names of children derive from it. */
export const PROJECT_ID = /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/;

/** The namespace of an organization. @throws RangeError when the id is not an organization id */
export function organizationNamespace(organizationId: string): string {
  if (!ORGANIZATION_ID.test(organizationId)) {
    throw new RangeError("not an organization id");
  }
  return `${ORGANIZATION_NAMESPACE_PREFIX}${organizationId}`;
}

/** The organization that a namespace belongs to, or undefined when it is no organization's. */
export function organizationOfNamespace(namespace: string): string | undefined {
  if (!namespace.startsWith(ORGANIZATION_NAMESPACE_PREFIX)) {
    return undefined;
  }
  const id = namespace.slice(ORGANIZATION_NAMESPACE_PREFIX.length);
  return ORGANIZATION_ID.test(id) ? id : undefined;
}

/** What decides a project's default domain. */
export interface DomainSubject {
  readonly metadata: { readonly namespace?: string; readonly name: string };
  readonly spec: { readonly name: string; readonly subdomain?: string };
  /** The domain that the project has now. */
  readonly status?: { readonly domain?: string };
}

/**
 * The default domain of a public HTTP project: `<subdomain>.<zone>`, or `<spec.name>-<8 hex>.<zone>` where the
 * digits come from namespace and id, so that equal names of two projects do not meet. A project that is renamed keeps
 * the domain that it was given.
 */
export function defaultDomain({ metadata, spec, status }: DomainSubject, zone: string): string {
  if (spec.subdomain !== undefined) {
    return `${spec.subdomain}.${zone}`;
  }
  const digest = createHash("sha256")
    .update(`${metadata.namespace ?? ""}/${metadata.name}`)
    .digest("hex");
  const ending = `-${digest.slice(0, 8)}.${zone}`;
  return status?.domain?.endsWith(ending) ? status.domain : `${spec.name}${ending}`;
}

/** Milliseconds of a minute. */
const MINUTE_MS = 60_000;

/**
 * Name of a run, and so its id: the project's and the scheduled minute since the epoch, as Kubernetes names a CronJob's
 * Jobs. Thus a minute cannot run twice. A manual run has a suffix of `[a-z0-9]`, at most 10.
 */
export function jobRunName(projectId: string, scheduledAt: Date, suffix?: string): string {
  const minute = Math.floor(scheduledAt.getTime() / MINUTE_MS);
  return suffix === undefined ? `${projectId}-${minute}` : `${projectId}-${minute}-${suffix}`;
}

/** Whether a project's Secret of this name was created by `/v1` for it, and is never changed. */
export function isEnvSecretName(projectId: string, name: string): boolean {
  return name.startsWith(`${projectId}-env-`) && /^[0-9a-f]{8,64}$/.test(name.slice(projectId.length + 5));
}

/** Name of the Secret that holds the environment variables with this content hash. */
export function envSecretName(projectId: string, hash: string): string {
  return `${projectId}-env-${hash}`;
}
