import { z } from "zod";
import { normalizeCron } from "../cron.ts";
import { normalizeContextPath } from "../fields.ts";
import { type ProjectSpec, projectSpec } from "../project/spec.ts";
import { type ProjectType, projectTypes, type TypedField, typedFields } from "../project/types.ts";
import { renderMessage } from "../rule.ts";
import { configName, createProjectBodies, type ImageAuthentication, typesOfConfigKey } from "./bodies.ts";
import type { EnvironmentVariable } from "./settings.ts";
import { snakeCase, toCamel } from "./snake.ts";

/** One broken rule; `field` reads `config.custom_domains[0]`, and is `body` when the whole is meant. */
export interface FieldIssue {
  field: string;
  message: string;
}

/** A body that keeps every rule, with what must not be in a spec apart. */
export interface CreateProjectRequest {
  /** Without `envsFrom` and `image.pullSecretRef`, which name Secrets that are yet to be made. */
  spec: ProjectSpec;
  envs: EnvironmentVariable[];
  /** Id of the project by reference of the variables, such as `shop-db.password`; absent where every value is literal. */
  references?: ReadonlyMap<string, string>;
  /** Credentials of a private image. */
  imageAuthentication?: ImageAuthentication;
}

export type CreateProjectResult =
  | { ok: true; value: CreateProjectRequest }
  | { ok: false; issues: FieldIssue[] };

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Checks a body of `POST /v1/project` against the fields of its type and every rule of the custom resource, and turns
 * it into a spec. Reports all broken rules together. Pure; unknown plans and what a plan lacks are not its business.
 */
export function parseCreateProject(body: unknown): CreateProjectResult {
  if (!isObject(body)) {
    return refuse([{ field: "body", message: "must be a JSON object" }]);
  }
  const normal = normalize(body);
  const type = typeOf(normal);
  if (type === undefined) {
    return refuse(withoutType(normal));
  }
  const structure = createProjectBodies[type].safeParse(normal);
  const spec = projectSpec.safeParse(specOf(normal));
  const issues = new Issues();
  for (const issue of structure.error?.issues ?? []) {
    issues.addStructural(issue, type);
  }
  for (const issue of spec.error?.issues ?? []) {
    issues.addSpec(issue);
  }
  if (issues.list.length > 0 || !structure.success || !spec.success) {
    return refuse(issues.list);
  }
  return { ok: true, value: accepted(structure.data, spec.data) };
}

const refuse = (issues: FieldIssue[]): CreateProjectResult => ({ ok: false, issues });

function accepted(body: Json, spec: ProjectSpec): CreateProjectRequest {
  const config = body.config as {
    envs?: EnvironmentVariable[];
    image?: { authentication?: ImageAuthentication };
  };
  const { envsFrom: _, image, ...rest } = spec;
  const authentication = config.image?.authentication;
  return {
    spec: {
      ...rest,
      ...(image === undefined ? {} : { image: { url: image.url, isPublic: image.isPublic } }),
    },
    envs: config.envs ?? [],
    ...(authentication === undefined ? {} : { imageAuthentication: authentication }),
  };
}

function typeOf({ config }: Json): ProjectType | undefined {
  return isObject(config) ? projectTypes.find((type) => type === config.type_project) : undefined;
}

/** Without a type only the common fields can be judged. */
function withoutType(body: Json): FieldIssue[] {
  const issues = new Issues();
  const { config, ...common } = body;
  const checked = createProjectBodies.http.omit({ config: true }).safeParse(common);
  for (const issue of checked.error?.issues ?? []) {
    issues.addStructural(issue, undefined);
  }
  if (!isObject(config)) {
    issues.add("config", config === undefined ? "is required" : "must be an object");
  } else {
    issues.add("config.type_project", `must be one of: ${projectTypes.join(", ")}`);
  }
  return issues.list;
}

/** What `/v1` forgives: spaces around schedules and paths, a leading `./`, and null for a command that is not wanted. */
function normalize(body: Json): Json {
  if (!isObject(body.config)) {
    return body;
  }
  const config: Json = { ...body.config };
  for (const key of ["build", "github"]) {
    const part = config[key];
    if (!isObject(part) || typeof part.context_path !== "string") {
      continue;
    }
    config[key] = { ...part, context_path: normalizeContextPath(part.context_path) };
  }
  if (isObject(config.job) && typeof config.job.cron === "string") {
    config.job = { ...config.job, cron: normalizeCron(config.job.cron) };
  }
  return { ...body, config };
}

/** The spec that a body requests, as far as it can be read from a body that may be broken. */
function specOf(body: Json): unknown {
  const { config, ...common } = body;
  const {
    type_project,
    envs: _envs,
    variable_group_ids: groups,
    image,
    build,
    github,
    ...rest
  } = isObject(config) ? config : ({} as Json);
  const withoutNull = (part: unknown): unknown =>
    isObject(part) ? Object.fromEntries(Object.entries(part).filter(([, value]) => value !== null)) : part;
  const snake: Json = { ...rest, ...common, type: type_project };
  if (image !== undefined) {
    snake.image = isObject(image) ? imageOf(image) : image;
  }
  if (groups !== undefined) {
    snake.variable_groups = groups;
  }
  if (build !== undefined) {
    snake.build = withoutNull(build);
  }
  if (github !== undefined) {
    snake.github = withoutNull(github);
  }
  return toCamel(snake);
}

/** Credentials become the reference that they will be, so that the rule on private images sees them. */
function imageOf({ authentication, ...image }: Json): Json {
  return authentication === undefined ? image : { ...image, pull_secret_ref: { name: "pending" } };
}

/** How `/v1` calls a path of the spec. */
function fieldOf(path: readonly PropertyKey[]): string {
  const [first, ...rest] = path.map((part) => (typeof part === "symbol" ? String(part) : part));
  if (first === undefined) {
    return "body";
  }
  const typed = (typedFields as readonly unknown[]).includes(first);
  const names = rest.map((part) => (typeof part === "number" ? part : fieldName(part)));
  if (first === "type") {
    return "config.type_project";
  }
  return join(
    typed ? ["config", configName(first as TypedField), ...names] : [snakeCase(String(first)), ...names],
  );
}

const fieldName = (key: string): string => (key === "pullSecretRef" ? "authentication" : snakeCase(key));

function join(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") {
      return `${text}[${part}]`;
    }
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** How `/v1` spells a field that a rule's message names; the place of the failure already says where it lies. */
const inMessage = (field: string): string => {
  const [first = "", ...rest] = field.split(".");
  if (first === "type") {
    return "type_project";
  }
  const own = (typedFields as readonly string[]).includes(first)
    ? configName(first as TypedField)
    : fieldName(first);
  return [own, ...rest.map(fieldName)].join(".");
};

/** Collects failures; one field is named once by structure, and rules do not repeat what structure said. */
class Issues {
  readonly list: FieldIssue[] = [];
  /** Messages by field: a body may have thousands of unknown fields, and each is looked up once. */
  readonly #byField = new Map<string, Set<string>>();

  add(field: string, message: string): void {
    const messages = this.#byField.get(field) ?? new Set();
    if (messages.has(message)) {
      return;
    }
    this.#byField.set(field, messages.add(message));
    this.list.push({ field, message });
  }

  addStructural(issue: z.core.$ZodIssue, type: ProjectType | undefined): void {
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) {
        this.add(join([...issue.path, key]), unknownKey(issue.path, key, type));
      }
    } else {
      this.add(join(issue.path) || "body", isMissing(issue) ? "is required" : issue.message);
    }
  }

  addSpec(issue: z.core.$ZodIssue): void {
    // Unknown keys are already reported, with the names that the client wrote.
    if (issue.code === "unrecognized_keys") {
      return;
    }
    const field = fieldOf(issue.path);
    if (withParents(field).some((one) => this.#byField.has(one))) {
      return;
    }
    const template = (issue as { params?: { template?: string } }).params?.template;
    this.add(field, template === undefined ? issue.message : renderMessage(template, inMessage));
  }
}

/** `a.b[0]`, `a.b` and `a` of `a.b[0]`. */
function withParents(field: string): string[] {
  const ends = [...field.matchAll(/[.[]/g)].map(({ index }) => index);
  return [field, ...ends.map((end) => field.slice(0, end))];
}

/** zod words a missing field as one that holds undefined. */
function isMissing(issue: z.core.$ZodIssue): boolean {
  return issue.code === "invalid_type" && issue.message.endsWith("received undefined");
}

function unknownKey(path: readonly PropertyKey[], key: string, type: ProjectType | undefined): string {
  const owners = path.length === 1 && path[0] === "config" ? typesOfConfigKey.get(key) : undefined;
  if (owners === undefined || type === undefined) {
    return `unknown field ${key}`;
  }
  return `${key} does not belong to projects of type ${type}, only to: ${owners.join(", ")}`;
}

/** The bodies as one schema, for the OpenAPI document. */
export const createProjectBody = z.union(projectTypes.map((type) => createProjectBodies[type]));
