import { z } from "zod";

/**
 * One rule that spans fields, said once: CEL for the cluster, `check` for everybody who holds the object in
 * memory. Both must mean the same; the fixtures under `testdata/` run through both.
 */
export interface Rule<T = unknown> {
  /** CEL over `self`; what goes into `x-kubernetes-validations`. */
  readonly cel: string;
  /** The same in TypeScript: true when the value keeps the rule. Sees only values whose `fields` are well-formed. */
  readonly check: (self: T) => boolean;
  /** What the user reads. `{camelCase}` marks a field's name, so that `/v1` can spell it its own way. */
  readonly message: string;
  /** Paths below `self` that the rule reads, dotted; the first one is where the failure is shown. Empty for a scalar. */
  readonly fields: readonly string[];
}

/** A rule on a change: CEL over `self` and `oldSelf`, checked only on update. */
export interface TransitionRule<T = unknown> {
  readonly cel: string;
  readonly check: (self: T, oldSelf: T) => boolean;
  readonly message: string;
  readonly fields: readonly string[];
}

/** Nothing of the object may change once it exists. `what` begins the message, such as `a build`. */
export function immutable<T>(what: string): TransitionRule<T> {
  return {
    cel: "self == oldSelf",
    check: (self, old) => JSON.stringify(self) === JSON.stringify(old),
    message: `${what} cannot be changed`,
    fields: [],
  };
}

/** The same of required members alone; others may change. */
export function immutableMembers<T extends object>(
  what: string,
  members: readonly (keyof T & string)[],
): TransitionRule<T> {
  return {
    cel: members.map((member) => `self.${member} == oldSelf.${member}`).join(" && "),
    check: (self, old) =>
      members.every((member) => JSON.stringify(self[member]) === JSON.stringify(old[member])),
    message: `${what} cannot be changed`,
    fields: [],
  };
}

/** One entry of `x-kubernetes-validations`. */
export interface CelValidation {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

/** The key under which CEL rules travel in a schema's metadata, and in the CRD. */
export const VALIDATIONS = "x-kubernetes-validations";

/** Types a rule. It changes nothing; it exists so that a rule reads as `rule<Spec>({cel, check, message, fields})`. */
export function rule<T>(definition: Rule<T>): Rule<T> {
  return definition;
}

/** Spells a message with the field names as they are in custom resources, or as `rename` spells them. */
export function renderMessage(message: string, rename: (field: string) => string = (field) => field): string {
  return message.replace(/\{([A-Za-z.]+)\}/g, (_, field: string) => rename(field));
}

function toCel(one: Rule<never> | TransitionRule<never>): CelValidation {
  const at = one.fields[0];
  const message = renderMessage(one.message);
  return at === undefined ? { rule: one.cel, message } : { rule: one.cel, message, fieldPath: `.${at}` };
}

/** True when one path lies at, above or below the other. */
function touches(issuePath: readonly PropertyKey[], field: string): boolean {
  const parts = field.split(".");
  return parts
    .slice(0, issuePath.length)
    .every((part, index) => issuePath[index] === undefined || String(issuePath[index]) === part);
}

interface RefinePayload {
  readonly value: unknown;
  readonly issues: readonly { readonly code?: string; readonly path?: readonly PropertyKey[] }[];
}

/**
 * Adds rules to a schema: refinements for zod, `x-kubernetes-validations` for the CRD. A refinement runs although
 * other fields are broken, so that one answer names every broken rule, but not when its own fields are.
 */
export function withRules<S extends z.ZodType>(
  schema: S,
  rules: readonly Rule<z.output<S>>[],
  transitions: readonly TransitionRule<z.output<S>>[] = [],
): S {
  let result = schema;
  for (const one of rules) {
    const when = ({ value, issues }: RefinePayload): boolean => {
      if (one.fields.length === 0) {
        return issues.length === 0;
      }
      if (typeof value !== "object" || value === null) {
        return false;
      }
      return !issues.some(
        ({ code, path = [] }) =>
          code !== "unrecognized_keys" &&
          code !== "custom" &&
          one.fields.some((field) => touches(path, field)),
      );
    };
    result = result.refine((value) => one.check(value as z.output<S>), {
      message: renderMessage(one.message),
      path: one.fields[0]?.split(".") ?? [],
      params: { template: one.message },
      when: when as never,
    });
  }
  const described = describeRules(schema, result, [...rules, ...transitions]);
  if (transitions.length > 0) {
    transitionsOf.set(described, transitions as readonly TransitionRule[]);
  }
  return described;
}

function describeRules<S extends z.ZodType>(
  schema: S,
  result: S,
  rules: readonly (Rule<never> | TransitionRule<never>)[],
): S {
  const earlier = (schema.meta()?.[VALIDATIONS] ?? []) as readonly CelValidation[];
  return result.meta({ [VALIDATIONS]: [...earlier, ...rules.map(toCel)] });
}

/** Rules on changes, by the schema that they belong to. */
const transitionsOf = new WeakMap<z.core.$ZodType, readonly TransitionRule[]>();

/** A broken rule on a change; `template` is the message with its field names marked. */
export interface TransitionIssue {
  readonly path: string[];
  readonly message: string;
  readonly template: string;
}

/** The rules on changes that going from `old` to `self` breaks, as the apiserver finds them on update. Both are valid. */
export function transitionIssues(
  schema: z.core.$ZodType,
  self: unknown,
  old: unknown,
  path: string[] = [],
): TransitionIssue[] {
  if (self === undefined || old === undefined) {
    return [];
  }
  if (schema instanceof z.ZodOptional) {
    return transitionIssues(schema.unwrap(), self, old, path);
  }
  const own = (transitionsOf.get(schema) ?? [])
    .filter((one) => !one.check(self, old))
    .map(({ message, fields }) => ({
      path: [...path, ...(fields[0]?.split(".") ?? [])],
      message: renderMessage(message),
      template: message,
    }));
  if (!(schema instanceof z.ZodObject)) {
    return own;
  }
  const below = Object.entries(schema.shape as Record<string, z.core.$ZodType>).flatMap(([key, field]) =>
    transitionIssues(field, (self as Record<string, unknown>)[key], (old as Record<string, unknown>)[key], [
      ...path,
      key,
    ]),
  );
  return [...own, ...below];
}

/** A list whose items are unique (`x-kubernetes-list-type: set`, which the apiserver enforces). */
export function setOf<S extends z.ZodType<string>>(list: z.ZodArray<S>): z.ZodArray<S> {
  return list
    .refine((items) => new Set(items).size === items.length, { message: "must not name anything twice" })
    .meta({ "x-kubernetes-list-type": "set" });
}

/** A list whose items are unique by one key (`x-kubernetes-list-type: map`, which the apiserver enforces). */
export function mapOf<S extends z.ZodType>(
  list: z.ZodArray<S>,
  key: keyof z.output<S> & string,
): z.ZodArray<S> {
  return list
    .refine(
      (items) => new Set(items.map((item) => (item as Record<string, unknown>)[key])).size === items.length,
      {
        message: `must not hold two items with the same ${key}`,
      },
    )
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] });
}
