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
import { mapOf } from "../rule.ts";
import { healthcheckFields, imageFields, secretRef } from "./parts.ts";

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
      "When the domain was given up for lack of proof. It is claimed again once it was taken out of the spec and put in anew.",
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
      .array(secretRef)
      .max(50)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe("Secrets with the environment; they are kept for as long as the deployment is listed.")
      .optional(),
    healthcheck: healthcheckFields.optional(),
  })
  .describe("What the pods were made from.");
export type DeploymentSettings = z.output<typeof deploymentSettings>;

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
    recorded: z
      .enum(["started", "finished"])
      .describe("What the ledger has of it; absent while it has nothing.")
      .optional(),
    settings: deploymentSettings,
  })
  .describe("One deployment.");
export type Deployment = z.output<typeof deployment>;

/** Deployments that a status lists, and that can be rolled back to. */
export const DEPLOYMENTS_KEPT = 10;

/** What the operator tells about a Project. Only the project controller writes it. */
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
      .describe("Exposure as it is, while the spec tells what it should be.")
      .optional(),
    desiredInstances: count("Instances that should run now; autoscaling and pausing included.").optional(),
    currentInstances: count("Instances that exist.").optional(),
    readyInstances: count("Instances that can serve.").optional(),
    image: imageStatus.optional(),
    maxCpu: text(0, 32, "CPU limit of one instance, as a quantity.").optional(),
    maxMemory: text(0, 32, "Memory limit of one instance, as a quantity.").optional(),
    plan: text(0, 63, "Plan that is in force.").optional(),
    planChange: z
      .strictObject({
        status: z.enum(["in_progress", "failed"]).describe("Where the change stands."),
        fromPlan: text(1, 63, "Plan before the change.").optional(),
        toPlan: text(1, 63, "Plan that was asked for."),
        startedAt: timestamp("When the change began."),
        finishedAt: timestamp("When the change failed.").optional(),
      })
      .describe("A plan change that runs, or the last one that failed; absent otherwise.")
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
    database: z
      .strictObject({
        host: text(1, 253, "Host that clients connect to."),
        port: z
          .int()
          .min(1)
          .max(65535)
          .meta({ description: "Port that clients connect to.", format: "int32" }),
        name: text(1, 63, "Name of the database.").optional(),
        username: text(1, 63, "User of the database.").optional(),
        credentialsSecretRef: z
          .strictObject({ name: text(1, 253, "Name of the Secret.") })
          .describe("Secret that holds the password.")
          .optional(),
        version: text(1, 32, "Version that runs.").optional(),
        driver: text(1, 32, "What runs the engine, chosen at creation.").optional(),
        primary: text(1, 253, "Pod that takes writes.").optional(),
        replicasReady: count("Replicas that follow.").optional(),
        storageCapacity: count("Capacity in GB that is in force.").optional(),
      })
      .describe("How the database is reached and how it stands. No secret is in it.")
      .optional(),
    job: z
      .strictObject({
        activeRun: text(1, 253, "Name of the JobRun that holds the slot.").optional(),
        lastScheduledAt: timestamp(
          "Scheduled minute of the newest occurrence that was admitted or missed.",
        ).optional(),
        nextScheduledAt: timestamp("Scheduled minute of the next occurrence.").optional(),
        missed: count("Occurrences that were missed.").optional(),
        scheduleClosedAt: timestamp(
          "When the controller acknowledged that the schedule is closed.",
        ).optional(),
      })
      .describe("Where a scheduled job stands.")
      .optional(),
  })
  .describe("What the project is, as the operator sees it.");
export type ProjectStatus = z.output<typeof projectStatus>;
