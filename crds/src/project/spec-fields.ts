import { z } from "zod";
import {
  description,
  exposure,
  hostname,
  integer,
  paymentMode,
  planId,
  profile,
  projectName,
  subdomain,
  text,
  timestamp,
} from "../fields.ts";
import { mapOf, setOf } from "../rule.ts";
import { ATTACHED_GROUPS_MAX, variableGroupName } from "../variablegroup.ts";
import { alertRules } from "./alerts.ts";
import {
  autoscaling,
  databaseSettings,
  envSource,
  healthcheck,
  image,
  instanceCommand,
  instances,
  job,
  networkAccess,
  preDeployCommand,
  preDeploySkip,
  preDeployTimeoutSeconds,
  readiness,
  rollback,
  sleepAfterSeconds,
  sourceRevision,
  storage,
  terminationGracePeriodSeconds,
} from "./parts.ts";
import { build, github, source } from "./source-parts.ts";
import { projectTypes } from "./types.ts";

/** The fields of a Project's spec without the rules that span them; `/v1` bodies pick from it. */
export const projectSpecFields = z
  .strictObject({
    type: z
      .enum(projectTypes)
      .describe("What the project is. It decides which fields it has, and cannot be changed."),
    name: projectName,
    description: description.optional(),
    plan: planId,
    paymentMode,
    paused: z
      .boolean()
      .describe(
        "Stops the project without deleting it: no instance runs, a job's schedule rests, data is kept.",
      )
      .optional(),
    pausedBy: z
      .enum(["budget"])
      .describe(
        "What paused it: `budget`, the hard cap of its organization's budget, which resumes it, too. Absent: a user. Of a project that is not paused it says nothing.",
      )
      .optional(),
    restartedAt: timestamp(
      "Set to a new moment to deploy the same settings again, for example when a tag leads to a new image.",
    ).optional(),
    planRequestedAt: timestamp(
      "Of a clickhouse project: set to a new moment to ask for its plan again, after a change to it has failed.",
    ).optional(),
    exposure: exposure.optional(),
    subdomain: subdomain.optional(),
    customDomains: setOf(z.array(hostname("A domain of the user's own that leads to the project.")).max(20))
      .describe("Domains of the user's own that lead to the project, once their ownership is proved.")
      .optional(),
    image: image.optional(),
    source: source.optional(),
    build: build.optional(),
    github: github.optional(),
    port: integer(1, 65535, "Port that the application listens on; the platform sets PORT to it.").optional(),
    instances: instances.optional(),
    storage: storage.optional(),
    envsFrom: mapOf(z.array(envSource).max(50), "name")
      .describe("Secrets whose keys become environment variables; a later one wins.")
      .optional(),
    variableGroups: setOf(z.array(variableGroupName).max(ATTACHED_GROUPS_MAX))
      .describe(
        "Variable groups that the project attaches; a later one wins over one before it, envsFrom over all of them.",
      )
      .optional(),
    networkAccess: networkAccess.optional(),
    healthcheck: healthcheck.optional(),
    terminationGracePeriodSeconds: terminationGracePeriodSeconds.optional(),
    sleepAfterSeconds: sleepAfterSeconds.optional(),
    autoscaling: autoscaling.optional(),
    command: instanceCommand.optional(),
    readiness: readiness.optional(),
    preDeployCommand: preDeployCommand.optional(),
    preDeployTimeoutSeconds: preDeployTimeoutSeconds.optional(),
    version: text(1, 32, "Version of the database engine.").optional(),
    profile: profile.optional(),
    database: databaseSettings.optional(),
    job: job.optional(),
    alerts: alertRules.optional(),
    creationPending: z
      .boolean()
      .describe(
        "Set by /v1 while it creates what belongs to the project: until it is removed, or for 30 seconds, the operator does nothing.",
      )
      .optional(),
    rollback: rollback.optional(),
    preDeploySkip: preDeploySkip.optional(),
    sourceRevision: sourceRevision.optional(),
    updatedAt: timestamp(
      "When /v1 last changed the spec, which writes it: managedFields do not record when a field was only removed.",
    ).optional(),
  })
  .describe("What the project should be.");

export type ProjectSpecFields = z.output<typeof projectSpecFields>;
