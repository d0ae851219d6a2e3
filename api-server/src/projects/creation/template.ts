import { type Catalog, findTemplate } from "@slipway/crds";
import { failures } from "../../errors/catalog.ts";
import type { FieldError } from "../../errors/failure.ts";

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const names = ["template_id", "template_revision"] as const;

/**
 * The body that is meant by one that names a template: the template's, with the request's own members over it, at the
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
export function refuseUnknownTemplate(body: unknown): void {
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
