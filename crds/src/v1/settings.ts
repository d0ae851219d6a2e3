/** The settings of a project as `/v1` has them: environment variables, and the bodies of their routes. */

import { z } from "zod";
import {
  bounded,
  cron,
  description,
  exposure,
  hostname,
  imageUrl,
  objectName,
  paymentMode,
  planId,
  projectName,
  subdomain,
  text,
} from "../fields.ts";
import { oneOffCommand, oneOffTimeoutSeconds } from "../jobrun.ts";
import {
  autoscaling,
  healthcheckFields,
  instanceCommand,
  instances,
  PRE_DEPLOY_TIMEOUT_SECONDS,
  preDeployCommand,
  preDeployTimeoutSeconds,
  sleepAfterSeconds,
  terminationGracePeriodSeconds,
} from "../project/parts.ts";
import { COMMAND_MAX_BYTES, isCommandShort } from "../project/words.ts";
import { setOf } from "../rule.ts";
import { variableGroupName } from "../variablegroup.ts";
import { snakeSchema } from "./snake.ts";

const nameOf = (longest: number) =>
  bounded(1, longest)
    // The names that a key of a Secret can have; `.` and names that begin with `..` are no keys either.
    .regex(/^([-_a-zA-Z0-9]|\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$/, {
      message: "must be letters, digits, hyphens, underscores and dots",
    })
    .describe("Name of the variable.");
const variableName = nameOf(120);

/** An environment variable as `/v1` has it. In the cluster it is in a Secret that `spec.envsFrom` names. */
export const environmentVariable = z
  .strictObject({
    name: variableName,
    value: bounded(1, 32_760)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
      .regex(/^[^\u0000]*$/, { message: "must not hold a NUL character: no process can be given one" })
      // Half of a surrogate pair has no bytes: it would come back as another character.
      .refine((value) => value.isWellFormed(), { message: "must be well-formed Unicode" })
      .describe("Value, taken literally: nothing in it is expanded."),
  })
  .refine(({ name, value }) => bytes(name, value) <= MAX_ARGUMENT_BYTES, {
    message: `is longer than Linux passes to a process: name and value may take ${131_072 - 2} bytes together`,
    path: ["value"],
  });
export type EnvironmentVariable = z.output<typeof environmentVariable>;

/** Where a variable comes from: the project's own, a variable group, or a Secret that others write. */
export const variableSource = z
  .discriminatedUnion("type", [
    z.strictObject({ type: z.literal("project") }),
    z.strictObject({
      type: z.literal("group"),
      id: variableGroupName.describe("Id of the variable group."),
      name: text(0, 64, "Name of the group.").optional(),
      hidden: z.boolean().describe("The caller may not read groups: the value is left out.").optional(),
    }),
    z.strictObject({ type: z.literal("secret"), name: objectName("Name of the Secret.") }),
  ])
  .describe("Where the variable comes from; absent where all are the project's own.");
export type VariableSource = z.output<typeof variableSource>;
export type SourcedVariable = EnvironmentVariable & { source?: VariableSource };

/** What Linux takes as one string of an environment (MAX_ARG_STRLEN), its `=` and its end included. */
const MAX_ARGUMENT_BYTES = 131_072;
/** What execve takes for arguments and environment with the usual stack (a quarter of 8 MiB), less room for our own. */
const MAX_ENVIRONMENT_BYTES = 2 * 1024 * 1024 - 192 * 1024;

/** The variables of a list that are the project's own. */
export function ownVariables(all: readonly SourcedVariable[]): EnvironmentVariable[] {
  return all.filter(isOwn).map(({ name, value }) => ({ name, value }));
}

const isOwn = ({ source }: SourcedVariable): boolean => source === undefined || source.type === "project";

const encoder = new TextEncoder();
/** Bytes of `NAME=value` and its end. */
function bytes(name: string, value: string): number {
  return encoder.encode(name).length + encoder.encode(value).length + 2;
}

/** One of a list as it was read, which is sent back. The rules of its value are those of where it comes from. */
const sentVariable = z.strictObject({
  // What a key of a Secret may have that others write.
  name: nameOf(253),
  value: z.string().max(1_048_576).describe("Value, taken literally: nothing in it is expanded."),
  source: variableSource.optional(),
});

/** A project's environment variables: at most 50, each name once, all of them small enough for a process to start. */
export const environment = z
  .array(environmentVariable)
  .max(50)
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, {
    message: "must not hold two variables with the same name",
  })
  .refine(
    // 8 bytes for the pointer to each.
    (all) => all.reduce((sum, { name, value }) => sum + bytes(name, value) + 8, 0) <= MAX_ENVIRONMENT_BYTES,
    { message: "are together longer than Linux passes to a process" },
  )
  .describe("Environment variables.");

// The bodies of "Project settings", made from the fields of the custom resource. Rules that span fields are the resource's.

export const patchNameBody = z.strictObject({ name: projectName });
export const patchDescriptionBody = z.strictObject({ description });
export const patchDomainBody = z.strictObject({ domain: subdomain });
export const patchCustomDomainsBody = z.strictObject({
  custom_domains: setOf(z.array(hostname("A domain of the user's own.")).max(20)).describe(
    "The complete list: a domain that is absent from it is removed. At most one may be new.",
  ),
});
export const patchExposureBody = z.strictObject({ exposure });
export const patchEnvsBody = z.strictObject({
  envs: z
    .array(sentVariable)
    // Those of the project, and of what it may attach.
    .max(600)
    .superRefine((all, context) => {
      const positions = all.flatMap((one, index) => (isOwn(one) ? [index] : []));
      for (const { message, path } of environment.safeParse(ownVariables(all)).error?.issues ?? []) {
        const [at, ...rest] = path;
        const shown = typeof at === "number" ? [positions[at] ?? at, ...rest] : [...path];
        context.addIssue({ code: "custom", message, path: shown });
      }
    })
    .describe(
      "The project's own variables, at most 50; those of other sources, as they were read, stay as they are.",
    ),
});
export const patchImageBody = z.strictObject({ image: imageUrl });
export const patchHealthBody = z
  .strictObject({
    healthcheck: snakeSchema(healthcheckFields)
      .nullable()
      .describe("The whole health check; null removes it. Absent, it stays.")
      .optional(),
    termination_grace_period_seconds: terminationGracePeriodSeconds
      .nullable()
      .describe("Time between SIGTERM and SIGKILL of an instance; null for 30. Absent, it stays.")
      .optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { message: "must have at least one member" })
  .meta({ minProperties: 1 });
export const patchAutoscalingBody = z
  .strictObject({
    autoscaling: snakeSchema(autoscaling)
      .nullable()
      .describe("The whole autoscaling; null removes it. Absent, it stays.")
      .optional(),
    instances: instances
      .describe("How many instances run; with autoscaling, the least. Absent, it stays.")
      .optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { message: "must have at least one member" })
  .meta({ minProperties: 1 });
const short = (command: z.ZodArray<z.ZodString>) =>
  command.refine(isCommandShort, { message: `must be at most ${COMMAND_MAX_BYTES} bytes of UTF-8 in all` });
export const patchCommandBody = z.strictObject({
  command: short(instanceCommand).nullable().describe("The whole command; null for the image's own."),
});
export const patchSleepBody = z.strictObject({
  sleep_after_seconds: sleepAfterSeconds
    .nullable()
    .describe("Time without a request after which no instance runs until the next one; null for never."),
});
export const patchPreDeployBody = z
  .strictObject({
    pre_deploy_command: preDeployCommand
      .nullable()
      .describe("The whole command; null removes it and its time limit. Absent, it stays.")
      .optional(),
    pre_deploy_timeout_seconds: preDeployTimeoutSeconds
      .nullable()
      .describe(`Time in which it must have ended; null for ${PRE_DEPLOY_TIMEOUT_SECONDS}. Absent, it stays.`)
      .optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { message: "must have at least one member" })
  .meta({ minProperties: 1 });
/** A command to run once in an application's image. */
export const startRunBody = z.strictObject({
  command: short(oneOffCommand),
  timeout_seconds: oneOffTimeoutSeconds.optional(),
});
/** `normalizeCron` comes first: `/v1` forgives spaces. */
export const patchScheduleBody = z.strictObject({ cron });
export const patchPlanBody = z.strictObject({ plan: planId, payment_mode: paymentMode.optional() });
export const rollbackBody = z.strictObject({
  deployment_id: text(1, 64, "Id of one of the project's newest deployments.").regex(/^[A-Za-z0-9._-]*$/, {
    message: "must be letters, digits, dots, underscores and hyphens",
  }),
  run_pre_deploy_command: z
    .boolean()
    .describe(
      "Whether the project's pre-deploy command runs before it, in the earlier image; false unless given.",
    )
    .optional(),
});
