import { z } from "zod";
import { projectSpecFields } from "../project/spec-fields.ts";
import { fieldsOfType, type ProjectType, projectTypes, type TypedField } from "../project/types.ts";
import { environment } from "./settings.ts";
import { snakeCase, snakeObject } from "./snake.ts";
import { variableGroupIds } from "./variable-groups.ts";

/** The bodies of `POST /v1/project`, one per type, made from the custom resource's own fields. */

const text = (about: string) => z.string().min(1).max(4096).describe(about);

/** Credentials of a private image. Never part of a spec. */
export const imageAuthentication = z.discriminatedUnion("auth_type", [
  z.strictObject({
    auth_type: z.literal("username_password"),
    username: text("User of the registry."),
    token: text("Password or token."),
  }),
  z.strictObject({
    auth_type: z.literal("aws"),
    aws: z.strictObject({
      access_key_id: text("Access key."),
      secret_access_key: text("Its secret."),
      region: text("Region of the registry."),
      account_id: text("Account of the registry."),
    }),
  }),
]);
export type ImageAuthentication = z.output<typeof imageAuthentication>;

const { shape } = projectSpecFields;

/** `null` removes a command; in a spec it is simply not there. */
function withNullableCommands(object: z.ZodObject): z.ZodObject {
  const nullable = Object.fromEntries(
    ["pre_build_command", "build_command"]
      .map((key) => [key, (object.shape[key] as z.ZodOptional).unwrap() as z.ZodType])
      .map(([key, field]) => [key as string, (field as z.ZodType).nullable().optional()]),
  );
  return object.extend(nullable);
}

const objectOf = (field: "image" | "build" | "github" | "job"): z.ZodObject =>
  snakeObject(shape[field].unwrap().shape);

/** Fields that `/v1` words otherwise than the spec does. */
const own: Partial<Record<TypedField, { name: string; schema: z.ZodType }>> = {
  envsFrom: { name: "envs", schema: environment },
  variableGroups: { name: "variable_group_ids", schema: variableGroupIds },
  image: {
    name: "image",
    schema: objectOf("image")
      .omit({ pull_secret_ref: true, digest: true, aws_credentials_ref: true })
      .extend({ authentication: imageAuthentication.optional() }),
  },
  job: { name: "job", schema: objectOf("job").omit({ closed_at: true }) },
  build: { name: "build", schema: withNullableCommands(objectOf("build")) },
  github: { name: "github", schema: withNullableCommands(objectOf("github")) },
};

/** Types whose `envs` must be sent, be it empty. */
const envsRequired: readonly ProjectType[] = ["http", "postgresql", "mariadb", "clickhouse"];

/** The name under `config` of a typed field of the spec. */
export function configName(field: TypedField): string {
  return own[field]?.name ?? snakeCase(field);
}

/** Typed fields that a creation cannot give, though a setting can. */
const settingsOnly: Partial<Record<ProjectType, readonly TypedField[]>> = {
  postgresql: ["database"],
  mariadb: ["database"],
  clickhouse: ["database"],
  valkey: ["envsFrom", "database"],
};

function configOf(type: ProjectType): z.ZodObject {
  const { required, optional } = fieldsOfType[type];
  const config: Record<string, z.ZodType> = { type_project: z.literal(type) };
  for (const field of [...required, ...optional]) {
    if (settingsOnly[type]?.includes(field)) {
      continue;
    }
    const schema =
      own[field]?.schema ?? snakeObject({ [field]: shape[field].unwrap() }).shape[snakeCase(field)];
    const must = required.includes(field) || (field === "envsFrom" && envsRequired.includes(type));
    config[configName(field)] = must ? (schema as z.ZodType) : (schema as z.ZodType).optional();
  }
  return z.strictObject(config);
}

function bodyOf(type: ProjectType): z.ZodObject {
  const { name, description, plan, paymentMode } = shape;
  return snakeObject({ name, description, plan, paymentMode }).extend({ config: configOf(type) });
}

/** The body of each type. Strict, but without the rules that span fields: `parseCreateProject` has all. */
export const createProjectBodies = Object.fromEntries(
  projectTypes.map((type) => [type, bodyOf(type)]),
) as Readonly<Record<ProjectType, z.ZodObject>>;

/** Every key that `config` has for some type, with the types that have it. */
export const typesOfConfigKey: ReadonlyMap<string, readonly ProjectType[]> = new Map(
  [...new Set(projectTypes.flatMap((type) => Object.keys(configOf(type).shape)))].map((key) => [
    key,
    projectTypes.filter((type) => key in configOf(type).shape),
  ]),
);
