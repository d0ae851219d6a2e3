import { z } from "zod";
import { conditions } from "../conditions.ts";
import {
  hostname,
  imageStatus,
  integer,
  observedGeneration,
  paymentMode,
  planId,
  text,
  timestamp,
} from "../fields.ts";
import { jobRunPhases } from "../jobrun.ts";
import { mapOf } from "../rule.ts";
import { billingStatus } from "./billing-status.ts";
import { missedReasons } from "./conditions.ts";
import { databaseStatus } from "./database-status.ts";
import { lastTermination } from "./last-termination.ts";
import {
  envSource,
  healthcheckFields,
  imageFields,
  instanceCommand,
  readiness,
  terminationGracePeriodSeconds,
} from "./parts.ts";
import { preDeployRun } from "./pre-deploy.ts";

/** The `status` of a project as the specification names it. */
export const projectPhases = [
  "creating",
  "running",
  "resuming",
  "stopped",
  "downloading",
  "failed",
  "failing",
  "deploying",
] as const;
export type ProjectPhase = (typeof projectPhases)[number];

/** Where a project is between running and sleeping. */
export const sleepPhases = ["entering", "asleep", "waking"] as const;

const sleep = z
  .strictObject({
    id: text(1, 64, "Distinguishes this sleep from every other one of the project."),
    phase: z
      .enum(sleepPhases)
      .describe(
        "entering: requests go to the activator, and instances still run; asleep: none runs; waking: they are being started.",
      ),
    since: timestamp("When the phase began."),
    generation: z
      .int()
      .min(0)
      .meta({ description: "Generation of the spec that sleeps: another one wakes it.", format: "int64" }),
  })
  .describe("Of a project that sleeps for want of requests; absent while it does not.");
export type Sleep = z.output<typeof sleep>;

const count = (about: string) => z.int().min(0).meta({ description: about, format: "int32" });

const dnsRecord = z
  .strictObject({
    type: z.enum(["TXT", "CNAME", "A", "AAAA"]).describe("Type of the record."),
    // A hostname of full length and the challenge's label before it.
    name: text(1, 280, "Full name of the record."),
    value: text(1, 512, "Value of the record."),
  })
  .describe("A record to create at the DNS provider.");

export const dnsRecords = z
  .array(dnsRecord)
  .max(8)
  .meta({ "x-kubernetes-list-type": "atomic" })
  .describe("Records to create at the DNS provider.");

const customDomain = z
  .strictObject({
    hostname: hostname("The domain."),
    status: z
      .enum(["pending", "active", "failed"])
      .describe("Whether traffic for the domain reaches the project."),
    sslStatus: z
      .enum(["pending_validation", "pending_issuance", "active", "failed", "disabled"])
      .describe("Where the domain's certificate stands; disabled: this platform issues none."),
    dnsRecords: dnsRecords.optional(),
    message: text(0, 512, "What is missing.").optional(),
    expiredAt: timestamp(
      "When the domain was given up for lack of proof. It is claimed again once it was removed from the spec and added again.",
    ).optional(),
  })
  .describe("Where a custom domain stands.");
export type CustomDomainStatus = z.output<typeof customDomain>;

/** What a deployment was made from: a rollback goes back to all of it. */
export const deploymentSettings = z
  .strictObject({
    image: imageFields.optional(),
    port: integer(1, 65535, "Port of the application.").optional(),
    plan: planId,
    paymentMode: paymentMode.optional(),
    envsFrom: z
      .array(envSource)
      .max(50)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe("Secrets with the environment; they are kept for as long as the deployment is listed.")
      .optional(),
    healthcheck: healthcheckFields.optional(),
    terminationGracePeriodSeconds: terminationGracePeriodSeconds.optional(),
    readiness: readiness.optional(),
    command: instanceCommand.optional(),
  })
  .describe("What the pods were made from.");
export type DeploymentSettings = z.output<typeof deploymentSettings>;

const sharedVariables = mapOf(
  z
    .array(
      z
        .strictObject({
          source: text(1, 300, "VariableGroup/NAME, or Secret/NAME of a Secret that others write."),
          resolved: text(
            1,
            253,
            "Secret of the project's own with a copy of its variables; several sources may have the same.",
          ),
          direct: z
            .boolean()
            .describe(
              "The pods read the source itself: it is as it was when the project was first seen with it.",
            )
            .optional(),
        })
        .describe("The values of one source."),
    )
    .max(100),
  "source",
);

const deployment = z
  .strictObject({
    id: text(1, 64, "Id of the deployment record."),
    status: z
      .enum(["in_progress", "succeeded", "failed", "superseded"])
      .describe("How it went; superseded: a newer one began before it ended."),
    startedAt: timestamp("When it began."),
    finishedAt: timestamp("When it ended.").optional(),
    generation: z
      .int()
      .min(0)
      .meta({ description: "Generation that was deployed.", format: "int64" })
      .optional(),
    settingsHash: text(1, 128, "Hash of all that the pods were made from."),
    updatedImage: z.boolean().describe("Whether the image is another than the deployment's before."),
    image: imageStatus,
    message: text(0, 1024, "Why it failed.").optional(),
    preDeploy: preDeployRun.optional(),
    recorded: z
      .enum(["started", "finished"])
      .describe("What the ledger has of it; absent while it has nothing.")
      .optional(),
    settings: deploymentSettings,
    sharedVariables: sharedVariables
      .describe("Copies of variables that several projects may share, as the pods had them.")
      .optional(),
    valuesOnly: z
      .boolean()
      .describe("Other values of shared variables began it, and nothing else.")
      .optional(),
  })
  .describe("One deployment.");
export type Deployment = z.output<typeof deployment>;

/** Deployments that a status lists, and that can be rolled back to. */
export const DEPLOYMENTS_KEPT = 10;

/** What the operator reports of a Project. The jobrun controller writes `job`, the project controller all else. */
export const projectStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation of the spec that this status is about."),
    phase: z.enum(projectPhases).describe("The project's state in one word.").optional(),
    conditions: conditions.optional(),
    domain: text(0, 253, "Default domain; absent for private projects.").optional(),
    url: text(0, 300, "Address at which the project answers.").optional(),
    customDomains: mapOf(z.array(customDomain).max(20), "hostname")
      .describe("Where each custom domain stands.")
      .optional(),
    exposure: z
      .strictObject({
        current: z.enum(["public", "private"]).describe("Exposure that is in place."),
        changing: z.boolean().describe("Whether a change of exposure is running.").optional(),
      })
      .describe("Exposure as it is, while the spec has what it should be.")
      .optional(),
    desiredInstances: count("Instances that should run now; autoscaling and pausing included.").optional(),
    requestScaling: z
      .strictObject({
        instances: count("Instances that requests need at the least."),
        requestsPerSecond: count("Requests a second at which that number was decided."),
      })
      .describe("Of a project that is scaled by requests: what was decided last.")
      .optional(),
    currentInstances: count("Instances that exist.").optional(),
    readyInstances: count("Instances that can serve.").optional(),
    image: imageStatus.optional(),
    maxCpu: text(0, 32, "CPU limit of one instance, as a quantity.").optional(),
    maxMemory: text(0, 32, "Memory limit of one instance, as a quantity.").optional(),
    lastTermination: lastTermination.optional(),
    sleep: sleep.optional(),
    references: mapOf(
      z
        .array(
          z
            .strictObject({
              secret: text(1, 253, "Secret with variables that refer to other projects."),
              resolved: text(1, 253, "Secret with the values of these variables."),
            })
            .describe("The values of one Secret's references."),
        )
        .max(100),
      "secret",
    )
      .describe("Secrets with the values that references to other projects were last resolved to.")
      .optional(),
    sharedVariables: sharedVariables
      .describe("Where the values of variables that several projects may share were last copied to.")
      .optional(),
    plan: text(0, 63, "Plan that is in force.").optional(),
    planChange: z
      .strictObject({
        status: z.enum(["in_progress", "failed"]).describe("Where the change stands."),
        fromPlan: text(1, 63, "Plan before the change.").optional(),
        toPlan: text(1, 63, "Plan that was asked for."),
        requestedAt: timestamp(
          "What spec.planRequestedAt said: together with the plan it distinguishes one request from another. A failed one is not retried.",
        ).optional(),
        startedAt: timestamp("When the change began."),
        finishedAt: timestamp("When the change failed.").optional(),
      })
      .describe("A plan change that runs, or the last one that failed; absent otherwise.")
      .optional(),
    templateVersion: z
      .int()
      .min(1)
      .max(1_000)
      .meta({
        description: "Version of what the pods' template is made from, until the next deployment.",
        format: "int32",
      })
      .optional(),
    deployments: mapOf(z.array(deployment).max(DEPLOYMENTS_KEPT), "id")
      .describe("The newest deployments, newest first; each can be rolled back to.")
      .optional(),
    lastDeployment: z
      .strictObject({
        id: text(1, 64, "Id of the deployment record."),
        status: z.enum(["in_progress", "succeeded", "failed", "superseded"]).describe("How it went."),
        startedAt: timestamp("When it began."),
        finishedAt: timestamp("When it ended.").optional(),
        image: imageStatus.optional(),
        settingsHash: text(1, 128, "Hash of all that the pods were made from.").optional(),
        generation: z
          .int()
          .min(0)
          .meta({ description: "Generation that was deployed.", format: "int64" })
          .optional(),
        message: text(0, 1024, "Why it failed.").optional(),
      })
      .describe("The last deployment.")
      .optional(),
    build: z
      .strictObject({
        lastBuild: text(1, 253, "Name of the newest Build.").optional(),
        imageBuild: text(1, 253, "Name of the Build whose image is to run.").optional(),
        imageBuildAt: timestamp("When that one was asked for: no older one takes its place.").optional(),
        image: imageStatus.optional(),
        publishedBuild: text(1, 253, "Name of the Build that serves.").optional(),
        commitSha: text(1, 64, "Commit that serves.").optional(),
        sourceRevision: z
          .int()
          .min(0)
          .meta({ description: "Revision of source and build settings.", format: "int64" })
          .optional(),
      })
      .describe("Builds of a Git project.")
      .optional(),
    buildFailure: z
      .strictObject({
        buildId: text(1, 253, "Build that failed."),
        code: text(1, 64, "Machine-readable code.").optional(),
        message: text(0, 1024, "What failed.").optional(),
        at: timestamp("When it failed.").optional(),
      })
      .describe("Why the newest build failed; absent when it did not.")
      .optional(),
    billing: billingStatus.optional(),
    database: databaseStatus.optional(),
    job: z
      .strictObject({
        activeRun: text(
          1,
          253,
          "Name of the JobRun that holds the project's slot, from its admission until its container has ended.",
        ).optional(),
        schedule: text(1, 100, "Schedule whose occurrences are followed.").optional(),
        scheduledSince: timestamp(
          "From when on occurrences count: when the schedule began, changed or was resumed. Absent while it rests.",
        ).optional(),
        lastScheduledAt: timestamp(
          "Scheduled minute of the newest occurrence that was admitted or missed.",
        ).optional(),
        lastFinishedAt: timestamp("When the container of the last run ended.").optional(),
        lastRun: z
          .strictObject({
            name: text(1, 253, "Name of the JobRun."),
            phase: z.enum(jobRunPhases).describe("How it ended."),
            startedAt: timestamp("When its container started.").optional(),
            finishedAt: timestamp("When its container ended.").optional(),
          })
          .describe("The last run that has ended.")
          .optional(),
        nextScheduledAt: timestamp(
          "Scheduled minute of the next occurrence, as of the last change.",
        ).optional(),
        missed: count("Occurrences that were missed.").optional(),
        missedReasons: mapOf(
          z
            .array(
              z
                .strictObject({
                  reason: z.enum(missedReasons).describe("Why they were missed."),
                  count: count("How many were."),
                  lastScheduledAt: timestamp("Scheduled minute of the newest of them."),
                })
                .describe("Those of one reason."),
            )
            .max(missedReasons.length),
          "reason",
        )
          .describe("Occurrences that were missed, by reason.")
          .optional(),
        scheduleClosedAt: timestamp(
          "When the controller acknowledged that the schedule is closed.",
        ).optional(),
      })
      .describe("Where a scheduled job stands.")
      .optional(),
  })
  .describe("What the project is, as the operator sees it.");
export type ProjectStatus = z.output<typeof projectStatus>;
