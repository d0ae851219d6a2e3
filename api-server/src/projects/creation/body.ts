import {
  type Catalog,
  type CreateProjectRequest,
  findHttpPlan,
  findPlan,
  findTemplate,
  isInstanceType,
  parseCreateProject,
} from "@slipway/crds";
import { runtimeErrors } from "../../builds/settings.ts";
import { offerErrors } from "../../databases/plan.ts";
import { type DomainPlatform, reservedDomainErrors } from "../../domains/spec.ts";
import { failures } from "../../errors/catalog.ts";
import type { FieldError } from "../../errors/failure.ts";
import type { Services } from "../../services.ts";
import { planErrors } from "../spec-errors.ts";
import { awsErrors } from "./secrets.ts";

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const names = ["template_id", "template_revision"] as const;

/**
 * Completes a body that names a template: the template's, with the request's own members over it, at the
 * top level and, key by key, in `config`. Without a template, or with one that is not there, the body as it is. Pure.
 */
export function withTemplate(body: unknown, catalog: Catalog): unknown {
  if (!isObject(body)) {
    return body;
  }
  const { template_id: id, template_revision: revision, ...own } = body;
  if (typeof id !== "string" || typeof revision !== "number") {
    return body;
  }
  const template = findTemplate(catalog, id, revision);
  if (!template) {
    return body;
  }
  const base = structuredClone(template.body);
  if (!isObject(base.config) || !isObject(own.config ?? {})) {
    return { ...base, ...own };
  }
  return { ...base, ...own, config: { ...base.config, ...(own.config as Json | undefined) } };
}

/**
 * Refuses a body that still names a template after {@link withTemplate}.
 * @throws Failure 400
 */
function refuseUnknownTemplate(body: unknown): void {
  if (!isObject(body) || !names.some((name) => name in body)) {
    return;
  }
  const { template_id: id, template_revision: revision } = body;
  const errors: FieldError[] = [];
  if (typeof id !== "string") {
    errors.push({ field: "template_id", message: "must be a string" });
  }
  if (typeof revision !== "number" || !Number.isSafeInteger(revision)) {
    errors.push({ field: "template_revision", message: "must be a whole number" });
  }
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  throw failures.templateNotFound(String(id), Number(revision));
}

/** Letters that an Idempotency-Key may have, and how many. */
const IDEMPOTENCY_KEY = /^[A-Za-z0-9._-]{16,200}$/;

/** Whether a request header is a valid Idempotency-Key. */
export const isIdempotencyKey = (key: unknown): key is string =>
  typeof key === "string" && IDEMPOTENCY_KEY.test(key);

type CreationServices = Pick<Services, "builds" | "catalog" | "runtimes" | keyof DomainPlatform>;

/**
 * Checks the body and the Idempotency-Key of a creation: the rules of the resource, then those of the catalog.
 * @throws Failure 400 that names every broken rule
 */
export function checkCreation(
  body: unknown,
  idempotencyKey: unknown,
  { catalog: { current: catalog }, builds, runtimes, ...platform }: CreationServices,
): CreateProjectRequest {
  refuseUnknownTemplate(body);
  const parsed = parseCreateProject(body);
  const errors: FieldError[] = parsed.ok ? [] : parsed.issues.map((issue) => withCode(issue, body));
  errors.push(...planFieldErrors(body, errors, catalog), ...keyErrors(body, idempotencyKey));
  if (parsed.ok) {
    const plan = findHttpPlan(catalog, parsed.value.spec.plan);
    if (plan && isInstanceType(parsed.value.spec.type)) {
      errors.push(...planErrors(parsed.value.spec, plan));
    }
    const databasePlan = catalog.databasePlans.find((one) => one.plan === parsed.value.spec.plan);
    if (databasePlan) {
      errors.push(...offerErrors(parsed.value.spec, databasePlan, catalog));
    }
    errors.push(...imageLoginErrors(parsed.value));
    // Where nothing is built, that is the error to report.
    if (builds.isOffered()) {
      const { build = {}, github = {} } = parsed.value.spec;
      errors.push(...runtimeErrors(build, runtimes(), "config.build."));
      errors.push(...runtimeErrors(github, runtimes(), "config.github."));
    }
    errors.push(
      ...reservedDomainErrors(parsed.value.spec.customDomains ?? [], platform, "config.custom_domains"),
    );
  }
  if (!parsed.ok || errors.length > 0) {
    throw failures.validation(errors);
  }
  return parsed.value;
}

function imageLoginErrors({
  spec: { image },
  imageAuthentication: login,
}: CreateProjectRequest): FieldError[] {
  return image && login?.auth_type === "aws" ? awsErrors(image.url, login.aws) : [];
}

/** An invalid payment mode, unlike a missing one, has codes of its own in the specification. */
function withCode(issue: { field: string; message: string }, body: unknown): FieldError {
  if (issue.field !== "payment_mode" || member(body, "payment_mode") === undefined) {
    return issue;
  }
  const isJob = member(member(body, "config"), "type_project") === "job";
  return { ...issue, code: isJob ? "SCHEDULED_JOB_PAYMENT_MODE_INVALID" : "PAYMENT_MODE_INVALID" };
}

/** A plan that the catalog does not have, unless the plan is refused already. */
function planFieldErrors(body: unknown, errors: readonly FieldError[], catalog: Catalog): FieldError[] {
  const plan = member(body, "plan");
  if (typeof plan !== "string" || errors.some((error) => error.field === "plan")) {
    return [];
  }
  return findPlan(catalog, plan)
    ? []
    : [{ field: "plan", message: `unknown plan ${plan}`, code: "PLAN_UNKNOWN" }];
}

function keyErrors(body: unknown, key: unknown): FieldError[] {
  const isValkey = member(member(body, "config"), "type_project") === "valkey";
  if (!isValkey || isSent(key)) {
    return idempotencyKeyErrors(key);
  }
  const message = "is required for projects of type valkey";
  return [{ field: KEY_FIELD, message, code: "IDEMPOTENCY_KEY_REQUIRED" }];
}

const KEY_FIELD = "Idempotency-Key";
const isSent = (key: unknown): boolean => key !== undefined && key !== "";

/** What is wrong with a request header that may be left out. */
export function idempotencyKeyErrors(key: unknown): FieldError[] {
  if (!isSent(key) || isIdempotencyKey(key)) {
    return [];
  }
  const field = KEY_FIELD;
  return [{ field, message: "must be 16 to 200 characters of letters, digits, dot, underscore and hyphen" }];
}

function member(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}
