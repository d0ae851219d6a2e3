import { z } from "zod";
import {
  absolutePath,
  cron,
  imageDigest,
  imageUrl,
  integer,
  matching,
  networkAccessItem,
  objectName,
  text,
  timestamp,
} from "../fields.ts";
import { mapOf, rule, withRules } from "../rule.ts";
import { COMMAND_MAX_BYTES, words } from "./words.ts";

/** The objects inside a Project's spec. */

export const secretRef = z
  .strictObject({ name: objectName("Name of the Secret.") })
  .describe("A Secret of the project's own namespace.");

/** References of one project, each occurrence counted: a value may become that much longer. */
export const REFERENCES_MAX = 100;

const reference = z
  .strictObject({
    reference: matching(
      /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.[a-z_]{1,32}$/,
      "must be the id or name of a project, a dot, and what it offers",
      96,
      "What a variable refers to, such as shop-db.password.",
    ),
    project: objectName(
      "Id of that project, whatever it is called by now. Without it: the project of that id, or the only one of that name.",
    ).optional(),
  })
  .describe("One reference to another project of the organization.");

export type DeclaredReference = z.output<typeof reference>;

/** A Secret with variables. */
export const envSource = z
  .strictObject({
    name: objectName("Name of the Secret."),
    references: mapOf(z.array(reference).max(REFERENCES_MAX), "reference")
      .describe(
        `Each \${project:NAME.MEMBER} of the Secret's values, which are replaced by what they refer to. Absent: every value is literal.`,
      )
      .optional(),
  })
  .describe("A Secret of the project's own namespace whose keys become environment variables.");
export type EnvSource = z.output<typeof envSource>;

/** Which image, and who may pull it: without the rules that span the fields. */
export const imageFields = z
  .strictObject({
    url: imageUrl,
    digest: imageDigest
      .describe("Pins the image: this manifest runs, whatever the tag of the url leads to by now.")
      .optional(),
    isPublic: z.boolean().describe("Whether the image can be pulled without credentials."),
    pullSecretRef: secretRef
      .describe("Secret of type kubernetes.io/dockerconfigjson with the credentials of a private image.")
      .optional(),
    awsCredentialsRef: secretRef
      .describe(
        "Secret of type slipway.dev/aws-registry with the keys accessKeyId, secretAccessKey, region and accountId: the platform logs in to the registry with them.",
      )
      .optional(),
  })
  .describe("The container image to run.");

export const image = withRules(imageFields, [
  rule({
    cel: "self.isPublic || has(self.pullSecretRef) || has(self.awsCredentialsRef)",
    check: (self) =>
      self.isPublic || self.pullSecretRef !== undefined || self.awsCredentialsRef !== undefined,
    message: "{pullSecretRef} is required when {isPublic} is false",
    fields: ["pullSecretRef", "isPublic", "awsCredentialsRef"],
  }),
  rule({
    cel: "!(has(self.pullSecretRef) && has(self.awsCredentialsRef))",
    check: (self) => self.pullSecretRef === undefined || self.awsCredentialsRef === undefined,
    message: "{awsCredentialsRef} and {pullSecretRef} exclude each other",
    fields: ["awsCredentialsRef", "pullSecretRef"],
  }),
]);

/** The reference that a container runs: the url, or the pinned manifest of it. */
export function imageReference({ url, digest }: { url: string; digest?: string }): string {
  return digest === undefined ? url : `${url.replace(/@sha256:[a-f0-9]{64}$/, "")}@${digest}`;
}

const tagPattern = matching(
  // No parenthesis after ? * + or @. The cluster's regular expressions have no look-ahead.
  /^(?:[^\p{Cc}\\[\]{}!?*+@]|[?*+@]+(?:[^\p{Cc}\\[\]{}!?*+@(]|$))+$/u,
  "may hold the wildcards * and ? only: no character classes, braces, extended globs such as +(v), backslashes or control characters",
  255,
  "Full tag name, case-sensitive, with the wildcards * (any sequence) and ? (one character).",
).min(1);

export const versionDeploy = withRules(
  z
    .strictObject({
      enabled: z.boolean().describe("Whether tags or releases are published."),
      event: z.enum(["tag", "release"]).describe("What starts a publication.").optional(),
      tagPattern: tagPattern.optional(),
      includePrereleases: z
        .boolean()
        .describe("Whether prereleases are published too; only for event release.")
        .optional(),
    })
    .describe("Publication by tag or by release."),
  [
    rule({
      cel: "!self.enabled || has(self.tagPattern)",
      check: (self) => !self.enabled || self.tagPattern !== undefined,
      message: "{tagPattern} is required when {enabled} is true",
      fields: ["tagPattern", "enabled"],
    }),
    rule({
      cel: "!self.enabled || has(self.event)",
      check: (self) => !self.enabled || self.event !== undefined,
      message: "{event} is required when {enabled} is true",
      fields: ["event", "enabled"],
    }),
  ],
);

export const storage = withRules(
  z
    .strictObject({
      persistent: z.boolean().describe("Whether the data outlives the container."),
      capacity: integer(1, 250, "Size in GB. It may grow, never shrink, while persistent."),
      dirPathToPersist: absolutePath.optional(),
    })
    .describe("Storage of each instance."),
  [],
  [
    {
      cel: "!oldSelf.persistent || self.capacity >= oldSelf.capacity",
      check: (self, old) => !old.persistent || self.capacity >= old.capacity,
      message: "{capacity} of persistent storage cannot shrink",
      fields: ["capacity"],
    },
    {
      cel: "self.persistent == oldSelf.persistent",
      check: (self, old) => self.persistent === old.persistent,
      message: "{persistent} cannot be changed",
      fields: ["persistent"],
    },
  ],
);

export const networkAccess = z
  .strictObject({
    ingressWhiteList: z
      .array(networkAccessItem)
      .max(10)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe("Ranges that may reach the project; 0.0.0.0/0 admits everybody."),
    ingressBlackList: z
      .array(networkAccessItem)
      .max(10)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe("Ranges that may not, although the white list admits them.")
      .optional(),
  })
  .describe("Who may reach the project, by address.");

const probedPath = (about: string) =>
  matching(/^\/[^\p{Cc} ]*$/u, "must be a path that begins with /", 256, about);

/** A health check without its rule. */
export const healthcheckFields = z
  .strictObject({
    enabled: z
      .boolean()
      .describe(
        "Whether the paths are probed; otherwise only the port is, and the other fields have no effect.",
      ),
    path: probedPath("Path that answers 2xx or 3xx when an instance can serve.").optional(),
    livenessPath: probedPath(
      "Path that answers 2xx or 3xx unless an instance hangs: one that answers three probes in a row with an error, or not within 5 seconds, is restarted.",
    ).optional(),
    startupTimeoutSeconds: integer(
      10,
      3600,
      "Time in which an instance must have started to serve; after it the instance is restarted and its deployment has failed.",
    ).optional(),
  })
  .describe("How the platform determines that an instance can serve.");

export const healthcheck = withRules(healthcheckFields, [
  rule({
    cel: "!self.enabled || has(self.path)",
    check: (self) => !self.enabled || self.path !== undefined,
    message: "{path} is required when {enabled} is true",
    fields: ["path", "enabled"],
  }),
]);

export const terminationGracePeriodSeconds = integer(
  1,
  300,
  "Time that an instance has between SIGTERM and SIGKILL when it is stopped, of an HTTP project after 5 seconds without new requests; 30 unless given.",
);

/** Bounds of the time without a request after which a project sleeps, in seconds. */
export const SLEEP_SECONDS = { min: 10, max: 604_800 } as const;

export const sleepAfterSeconds = integer(
  SLEEP_SECONDS.min,
  SLEEP_SECONDS.max,
  "Time without a request after which no instance of a public project runs until the next one, where its plan allows it; without it instances run all the time.",
);

export const instances = integer(1, 100, "How many instances run; with autoscaling, the least.");

export const autoscaling = z
  .strictObject({
    enabled: z.boolean().describe("Whether the number of instances follows the load."),
    maxInstances: integer(1, 100, "Most instances to scale to; instances is the least."),
    cpuTargetPercentage: integer(1, 100, "Average CPU to hold, in percent of the plan's.").optional(),
    memoryTargetPercentage: integer(1, 100, "Average memory to hold, in percent of the plan's.").optional(),
    requestsPerSecondTarget: integer(
      1,
      10_000,
      "Requests a second to hold for each instance, as the ingress counts them; of HTTP projects alone.",
    ).optional(),
  })
  .describe("Scaling by CPU, memory and requests.");

/** The policy of a database's backups; what it leaves out is the platform's. */
export const backupPolicy = z
  .strictObject({
    enabled: z
      .boolean()
      .describe("Whether backups are made by schedule; true unless given, where the platform has a schedule.")
      .optional(),
    schedule: cron
      .describe("When, in UTC: minute, hour, day of month, month, day of week (0 is Sunday).")
      .optional(),
    retentionDays: integer(1, 3650, "Days for which a backup is kept.").optional(),
    verifySchedule: cron.describe("When the newest backup is loaded and counted, in UTC.").optional(),
  })
  .describe("Scheduled backups.");
export type BackupPolicy = z.output<typeof backupPolicy>;

export const databaseSettings = z
  .strictObject({
    backup: backupPolicy.optional(),
    restoreFrom: z
      .strictObject({ backup: objectName("Name of a Backup of the same namespace, engine and version.") })
      .describe("What the new database begins with.")
      .optional(),
  })
  .describe("What only databases and key-value services have.");

export const job = z
  .strictObject({
    cron,
    command: words(
      "Replaces the image's entrypoint. Without command and args the image's own are used.",
    ).optional(),
    args: words("Arguments of the command.").optional(),
    closedAt: timestamp(
      "Closes the schedule, as the first step of deleting the job: no new run begins. A change of the schedule through /v1 opens it again.",
    ).optional(),
  })
  .describe("When a scheduled job runs, and what.");

export const instanceCommand = words(
  `Runs in each instance in place of the image's entrypoint and command, without a shell; of a project from an image. At most ${COMMAND_MAX_BYTES} bytes of UTF-8 in all. All who may read the project are shown it: secrets are to be variables.`,
).min(1);

export const readiness = z
  .strictObject({
    command: words(
      "Runs in an instance every few seconds, without a shell: the instance is ready while it succeeds.",
    ).min(1),
  })
  .describe("How the platform determines that a worker is ready; without it one that runs is.");

/** Most seconds that a pre-deploy command may have. */
export const PRE_DEPLOY_TIMEOUT_MAX_SECONDS = 3_600;
/** Seconds that it has unless its project says otherwise. */
export const PRE_DEPLOY_TIMEOUT_SECONDS = 600;

export const preDeployCommand = words(
  "Runs once for each deployment, without a shell, in the new image with its variables and before any instance of it: a migration, for example. Unless it ends with exit code 0 the deployment has failed, and the version before serves on. It has no volume.",
).min(1);

export const preDeployTimeoutSeconds = integer(
  10,
  PRE_DEPLOY_TIMEOUT_MAX_SECONDS,
  `Time in which the pre-deploy command must have ended, the pull of its image included; ${PRE_DEPLOY_TIMEOUT_SECONDS} unless given.`,
);

export const preDeploySkip = z
  .strictObject({
    deployment: text(1, 64, "Id of the earlier deployment that was rolled back to."),
    restartedAt: timestamp("spec.restartedAt of the rollback: a later one ends this."),
  })
  .describe(
    "Written by a rollback through /v1: deployments of that rollback do not run the pre-deploy command, while image and variables are those of the earlier deployment.",
  );
export type PreDeploySkip = z.output<typeof preDeploySkip>;

export const rollback = z
  .strictObject({
    at: timestamp("When it was requested. A build that is requested later replaces the image."),
    digest: imageDigest.describe("Digest of the image to run, which a build of this project has published."),
  })
  .describe("Of a project that is built from Git: its last rollback. It has no effect on others.");
export type Rollback = z.output<typeof rollback>;

export const sourceRevision = z
  .strictObject({
    number: z
      .int()
      .min(0)
      .meta({ description: "How often the source was changed; 1 for the first one.", format: "int64" }),
    hash: matching(/^[0-9a-f]{16}$/, "must be 16 hexadecimal characters", 16, "Hash of that source."),
  })
  .describe(
    "Revision of source, build and github, which the platform writes: /v1 with each change of them, the operator after any other.",
  );
export type SourceRevision = z.output<typeof sourceRevision>;
