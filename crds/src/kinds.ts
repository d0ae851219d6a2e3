import { z } from "zod";
import { backupSpec, backupStatus } from "./backup.ts";
import { buildSpec, buildStatus } from "./build.ts";
import { deletedProjectSpec, deletedProjectStatus } from "./deletedproject.ts";
import { domainClaimSpec, domainClaimStatus } from "./domainclaim.ts";
import { gitConnectionSpec, gitConnectionStatus } from "./gitconnection.ts";
import { jobRunSpec, jobRunStatus } from "./jobrun.ts";
import { logDrainSpec, logDrainStatus } from "./logdrain.ts";
import {
  backupNameRule,
  claimName,
  connectionId,
  drainId,
  groupId,
  projectId,
  type Root,
} from "./name-rules.ts";
import { API_VERSION, plurals } from "./names.ts";
import { projectSpec } from "./project/spec.ts";
import { projectStatus } from "./project/status.ts";
import { type Rule, withRules } from "./rule.ts";
import { variableGroupSpec } from "./variablegroup.ts";

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date" | "boolean";
  readonly jsonPath: string;
  readonly description?: string;
  /** 1 shows the column only with `-o wide`. */
  readonly priority?: number;
}

/** All that a custom resource definition says. */
export interface Kind {
  readonly kind: keyof typeof plurals;
  readonly singular: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
  readonly description: string;
  readonly spec: z.ZodType;
  /** Absent where nothing is reported. */
  readonly status?: z.ZodType;
  readonly rules: readonly Rule<Root>[];
  readonly columns: readonly PrinterColumn[];
}

const conditionColumn = (type: string, priority?: number): PrinterColumn => ({
  name: type,
  type: "string",
  jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
  ...(priority === undefined ? {} : { priority }),
});
const age: PrinterColumn = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

const project: Kind = {
  kind: "Project",
  singular: "project",
  plural: plurals.Project,
  shortNames: ["proj"],
  scope: "Namespaced",
  description:
    "Project is an application, a database, a key-value service or a scheduled job that the platform hosts. Its metadata.name is the project's id.",
  spec: projectSpec,
  status: projectStatus,
  rules: [projectId],
  columns: [
    { name: "Title", type: "string", jsonPath: ".spec.name", description: "Name that people gave it." },
    { name: "Type", type: "string", jsonPath: ".spec.type" },
    { name: "Plan", type: "string", jsonPath: ".spec.plan" },
    { name: "Status", type: "string", jsonPath: ".status.phase" },
    conditionColumn("Ready"),
    {
      name: "Instances",
      type: "integer",
      jsonPath: ".status.readyInstances",
      description: "Instances that serve.",
    },
    {
      name: "Desired",
      type: "integer",
      jsonPath: ".status.desiredInstances",
      description: "Instances that should.",
    },
    { name: "Domain", type: "string", jsonPath: ".status.domain" },
    {
      name: "Engine",
      type: "string",
      jsonPath: ".status.database.engine",
      description: "What runs a database.",
    },
    { name: "Version", type: "string", jsonPath: ".spec.version" },
    { name: "Primary", type: "string", jsonPath: ".status.database.primary" },
    age,
    {
      name: "Running",
      type: "string",
      jsonPath: ".status.database.runningVersion",
      description: "Version as the database's server reports it.",
      priority: 1,
    },
    { name: "Image", type: "string", jsonPath: ".status.image.reference", priority: 1 },
    {
      name: "Reason",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      priority: 1,
    },
    {
      name: "Message",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Ready")].message',
      priority: 1,
    },
  ],
};

const jobRun: Kind = {
  kind: "JobRun",
  singular: "jobrun",
  plural: plurals.JobRun,
  shortNames: ["jr"],
  scope: "Namespaced",
  description:
    "JobRun is one run of a scheduled job, or of a command in an application's image, from its admission until its charge is in the ledger.",
  spec: jobRunSpec,
  status: jobRunStatus,
  rules: [],
  columns: [
    { name: "Project", type: "string", jsonPath: ".spec.projectRef.name" },
    { name: "Trigger", type: "string", jsonPath: ".spec.trigger" },
    { name: "Status", type: "string", jsonPath: ".status.phase" },
    { name: "Scheduled", type: "string", jsonPath: ".spec.scheduledAt" },
    { name: "Started", type: "string", jsonPath: ".status.startedAt" },
    { name: "Minutes", type: "integer", jsonPath: ".status.billedMinutes" },
    conditionColumn("Charged"),
    age,
    { name: "Amount", type: "string", jsonPath: ".status.amount", priority: 1 },
    { name: "Plan", type: "string", jsonPath: ".status.plan", priority: 1 },
    { name: "Pod", type: "string", jsonPath: ".status.podName", priority: 1 },
  ],
};

const build: Kind = {
  kind: "Build",
  singular: "build",
  plural: plurals.Build,
  shortNames: ["bld"],
  scope: "Namespaced",
  description: "Build is one build of a Git project, from its request to the image that was pushed.",
  spec: buildSpec,
  status: buildStatus,
  rules: [],
  columns: [
    { name: "Project", type: "string", jsonPath: ".spec.projectRef.name" },
    { name: "Status", type: "string", jsonPath: ".status.phase" },
    { name: "Step", type: "string", jsonPath: ".status.step" },
    { name: "Branch", type: "string", jsonPath: ".spec.branch" },
    { name: "Commit", type: "string", jsonPath: ".status.commitSha" },
    { name: "By", type: "string", jsonPath: ".spec.triggeredBy" },
    { name: "Error", type: "string", jsonPath: ".status.errorCode" },
    age,
    { name: "Image", type: "string", jsonPath: ".status.image.reference", priority: 1 },
  ],
};

const domainClaim: Kind = {
  kind: "DomainClaim",
  singular: "domainclaim",
  plural: plurals.DomainClaim,
  shortNames: ["dc"],
  scope: "Cluster",
  description:
    "DomainClaim is the claim of one project on one hostname. Its name is the hostname, so nobody can claim it twice.",
  spec: domainClaimSpec,
  status: domainClaimStatus,
  rules: [claimName],
  columns: [
    { name: "Organization", type: "string", jsonPath: ".spec.organization" },
    { name: "Project", type: "string", jsonPath: ".spec.projectRef.name" },
    { name: "Kind", type: "string", jsonPath: ".spec.kind" },
    conditionColumn("Verified"),
    conditionColumn("Ready"),
    age,
    { name: "Expires", type: "string", jsonPath: ".status.expiresAt", priority: 1 },
  ],
};

const backup: Kind = {
  kind: "Backup",
  singular: "backup",
  plural: plurals.Backup,
  shortNames: ["bkp"],
  scope: "Namespaced",
  description:
    "Backup is one backup of a database. Deleting it deletes what is stored; it outlives its project until it expires.",
  spec: backupSpec,
  status: backupStatus,
  rules: [backupNameRule],
  columns: [
    { name: "Project", type: "string", jsonPath: ".spec.projectRef.name" },
    { name: "Trigger", type: "string", jsonPath: ".spec.trigger" },
    { name: "Status", type: "string", jsonPath: ".status.phase" },
    { name: "Engine", type: "string", jsonPath: ".status.engine" },
    { name: "Bytes", type: "integer", jsonPath: ".status.sizeBytes" },
    { name: "Finished", type: "date", jsonPath: ".status.finishedAt" },
    { name: "Verified", type: "date", jsonPath: ".status.lastVerifiedAt" },
    age,
    { name: "Expires", type: "string", jsonPath: ".spec.expiresAt", priority: 1 },
    { name: "Location", type: "string", jsonPath: ".status.location", priority: 1 },
    { name: "Message", type: "string", jsonPath: ".status.message", priority: 1 },
  ],
};

const gitConnection: Kind = {
  kind: "GitConnection",
  singular: "gitconnection",
  plural: plurals.GitConnection,
  shortNames: ["gitconn"],
  scope: "Namespaced",
  description:
    "GitConnection is the access of an organization to a Git server. Its credential is in the Secret that it names.",
  spec: gitConnectionSpec,
  status: gitConnectionStatus,
  rules: [connectionId],
  columns: [
    {
      name: "Title",
      type: "string",
      jsonPath: ".spec.displayName",
      description: "Name that people gave it.",
    },
    { name: "Provider", type: "string", jsonPath: ".spec.providerId" },
    { name: "Instance", type: "string", jsonPath: ".spec.instanceUrl" },
    { name: "Status", type: "string", jsonPath: ".status.phase" },
    conditionColumn("Ready"),
    age,
    { name: "Repository", type: "string", jsonPath: ".spec.repositoryPath", priority: 1 },
    { name: "Revoked", type: "string", jsonPath: ".spec.revokedAt", priority: 1 },
  ],
};

const deletedProject: Kind = {
  kind: "DeletedProject",
  singular: "deletedproject",
  plural: plurals.DeletedProject,
  shortNames: ["delproj"],
  scope: "Namespaced",
  description:
    "DeletedProject is a deleted project whose volumes and Secrets are retained until it expires. Deleting it deletes them.",
  spec: deletedProjectSpec,
  status: deletedProjectStatus,
  rules: [],
  columns: [
    { name: "Project", type: "string", jsonPath: ".spec.projectRef.name" },
    {
      name: "Title",
      type: "string",
      jsonPath: ".spec.displayName",
      description: "Name that people gave it.",
    },
    { name: "Type", type: "string", jsonPath: ".spec.type" },
    { name: "Plan", type: "string", jsonPath: ".spec.plan" },
    { name: "Deleted", type: "date", jsonPath: ".spec.deletedAt" },
    { name: "Expires", type: "string", jsonPath: ".spec.expiresAt" },
    conditionColumn("Ready"),
    {
      name: "Reason",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      priority: 1,
    },
  ],
};

const variableGroup: Kind = {
  kind: "VariableGroup",
  singular: "variablegroup",
  plural: plurals.VariableGroup,
  shortNames: ["vargroup"],
  scope: "Namespaced",
  description:
    "VariableGroup is a named set of variables of an organization that its projects attach. The values are in the Secret that it names.",
  spec: variableGroupSpec,
  rules: [groupId],
  columns: [
    {
      name: "Title",
      type: "string",
      jsonPath: ".spec.displayName",
      description: "Name that people gave it.",
    },
    { name: "Secret", type: "string", jsonPath: ".spec.secretRef.name" },
    age,
  ],
};

const logDrain: Kind = {
  kind: "LogDrain",
  singular: "logdrain",
  plural: plurals.LogDrain,
  shortNames: ["drain"],
  scope: "Namespaced",
  description:
    "LogDrain is a receiver of an organization's own to which lines of its projects' logs are sent. Its credentials are in the Secret that it names.",
  spec: logDrainSpec,
  status: logDrainStatus,
  rules: [drainId],
  columns: [
    {
      name: "Title",
      type: "string",
      jsonPath: ".spec.displayName",
      description: "Name that people gave it.",
    },
    { name: "Project", type: "string", jsonPath: ".spec.projectRef.name" },
    conditionColumn("Ready"),
    conditionColumn("Delivering"),
    {
      name: "Lag",
      type: "integer",
      jsonPath: ".status.lagSeconds",
      description: "Seconds behind the store.",
    },
    age,
    {
      name: "Message",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Delivering")].message',
      priority: 1,
    },
  ],
};

/** Every custom resource. */
export const kinds: readonly Kind[] = [
  project,
  jobRun,
  build,
  domainClaim,
  backup,
  gitConnection,
  deletedProject,
  variableGroup,
  logDrain,
];

/** Schema of a whole resource as a user writes it: what the fixtures run through. */
export function resourceSchema({ kind, spec, status, rules }: Kind): z.ZodType {
  const root = z.strictObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(kind),
    metadata: z.looseObject({ name: z.string().min(1).max(253) }),
    spec,
    ...(status === undefined ? {} : { status: status.optional() }),
  });
  return withRules(root, rules);
}
