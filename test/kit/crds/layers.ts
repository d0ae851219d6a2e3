import { readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";
import { parse } from "yaml";
import { type Crd, crdFileName } from "../../../crds/src/generate/crd.ts";
import { type Kind, resourceSchema } from "../../../crds/src/kinds.ts";
import { transitionIssues } from "../../../crds/src/rule.ts";
import { dotted, type FixtureResource } from "./fixtures.ts";

/** The layers that need no cluster; each answers with one line a failure, `path: message`. */

/** The errors of zod for a resource. */
export function zodFailures(kind: Kind, resource: unknown): string[] {
  const issues = resourceSchema(kind).safeParse(resource).error?.issues ?? [];
  return issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => `${dotted([...issue.path, key])}: unknown field`)
      : [`${dotted(issue.path)}: ${issue.message}`],
  );
}

/** What the rules on changes say of a change from `old` to `resource`. */
export function transitionFailures(kind: Kind, resource: FixtureResource, old: FixtureResource): string[] {
  return transitionIssues(kind.spec, resource.spec, old.spec, ["spec"]).map(
    ({ path, message }) => `${dotted(path)}: ${message}`,
  );
}

const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
const compiled = new Map<string, ValidateFunction>();

/** The errors of the structural part of the committed definition, with strict field validation. */
export function ajvFailures(kind: Kind, resource: unknown): string[] {
  const file = crdFileName(kind);
  const validate =
    compiled.get(file) ?? ajv.compile(closed(committedCrd(file).spec.versions[0]?.schema.openAPIV3Schema));
  compiled.set(file, validate);
  if (validate(resource)) {
    return [];
  }
  return (validate.errors ?? []).map(({ instancePath, params, message }) => {
    const below = (params as { missingProperty?: string; additionalProperty?: string }) ?? {};
    const parts = [...instancePath.split("/").slice(1), below.missingProperty ?? below.additionalProperty];
    return `${dotted(parts.filter((part) => part !== undefined))}: ${message ?? ""}`;
  });
}

/** A definition as it is under `crds/generated/`. */
export function committedCrd(file: string): Crd {
  return parse(readFileSync(new URL(`../../../crds/generated/${file}`, import.meta.url), "utf8")) as Crd;
}

/** `fieldValidation=Strict` refuses what pruning would drop: the same as closing every object that lists properties. */
function closed(schema: unknown): object {
  if (Array.isArray(schema) || typeof schema !== "object" || schema === null) {
    return schema as object;
  }
  const node = Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => !key.startsWith("x-kubernetes-"))
      .map(([key, value]) => [
        key,
        key === "properties" ? mapValues(value as object) : closedValue(key, value),
      ]),
  );
  return "properties" in node ? { ...node, additionalProperties: false } : node;
}

const mapValues = (properties: object): object =>
  Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, closed(property)]));
const closedValue = (key: string, value: unknown): unknown =>
  key === "items" || key === "additionalProperties" ? closed(value) : value;
