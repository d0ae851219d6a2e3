/** What a change of a JSON schema breaks: for who sends such values, and for who reads them. */

import { addedRules } from "./rule-changes.ts";

/** The keywords of JSON Schema that the API and the custom resources use. */
export interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  enum?: readonly unknown[];
  const?: unknown;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  oneOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  allOf?: readonly Schema[];
  "x-kubernetes-validations"?: readonly { rule: string }[];
}

/** Two versions of a schema, and where what they refer to is found. */
export interface Versions {
  readonly before: Schema;
  readonly after: Schema;
}

/** Resolves `#/…` references of one document. Nothing may refer to itself. */
export type Resolve = (schema: Schema) => Schema;

/** Makes a {@link Resolve} of a document. @throws Error for a reference that leads nowhere */
export function resolverOf(document: object): Resolve {
  return (schema) => {
    if (schema.$ref === undefined) {
      return schema;
    }
    const steps = schema.$ref.replace(/^#\//, "").split("/");
    const found = steps.reduce<unknown>(
      (at, step) => (at as Record<string, unknown> | undefined)?.[step],
      document,
    );
    if (found === undefined) {
      throw new Error(`${schema.$ref} is not in the document`);
    }
    return found as Schema;
  };
}

export interface CompareOptions {
  readonly before: Resolve;
  readonly after: Resolve;
}

/**
 * What breaks for those who send values that fit the schema before.
 * @param at what the schema is of, for the messages
 * @returns a sentence for each break; empty when everything that fitted still fits
 */
export function breaksForSenders(versions: Versions, at: string, resolve: CompareOptions): string[] {
  const before = resolve.before(versions.before);
  const after = resolve.after(versions.after);
  const branches = variantsOf(before);
  const variants = variantsOf(after);
  if (branches.length > 1 || variants.length > 1) {
    return branches.flatMap((branch, index) =>
      fewest(
        variants.map((variant) =>
          breaksForSenders({ before: branch, after: variant }, `${at}[${index}]`, resolve),
        ),
      ),
    );
  }
  const breaks: string[] = [];
  const refused = typesOf(before).filter((type) => !accepts(typesOf(after), type));
  if (refused.length > 0) {
    breaks.push(`${at}: ${refused.join(" and ")} is refused`);
  }
  breaks.push(...refusedValues(before, after).map((value) => `${at}: ${JSON.stringify(value)} is refused`));
  for (const [keyword, isTighter] of limits) {
    const [was, is] = [before[keyword], after[keyword]];
    if (is !== undefined && (was === undefined || isTighter(is, was))) {
      breaks.push(`${at}: ${keyword} is ${is}, was ${was ?? "none"}`);
    }
  }
  if (after.pattern !== undefined && after.pattern !== before.pattern) {
    breaks.push(`${at}: pattern is ${after.pattern}, was ${before.pattern ?? "none"}`);
  }
  breaks.push(...addedRules({ before, after }).map((rule) => `${at}: a rule was added: ${rule}`));
  for (const name of after.required ?? []) {
    if (!before.required?.includes(name)) {
      breaks.push(`${at}.${name} is required`);
    }
  }
  for (const [name, property] of Object.entries(before.properties ?? {})) {
    const now = after.properties?.[name] ?? additional(after);
    breaks.push(
      ...(now === undefined
        ? [`${at}.${name} is gone`]
        : breaksForSenders({ before: property, after: now }, `${at}.${name}`, resolve)),
    );
  }
  return [...breaks, ...ofParts({ before, after }, at, resolve, breaksForSenders)];
}

/**
 * What breaks for those who read values: what they rely on may be missing, or of another type. A new value of an enumeration is
 * none: clients have to expect it.
 * @param at what the schema is of, for the messages
 */
export function breaksForReaders(versions: Versions, at: string, resolve: CompareOptions): string[] {
  const before = resolve.before(versions.before);
  const after = resolve.after(versions.after);
  const branches = variantsOf(before);
  const variants = variantsOf(after);
  if (branches.length > 1 || variants.length > 1) {
    return variants.flatMap((variant, index) =>
      fewest(
        branches.map((branch) =>
          breaksForReaders({ before: branch, after: variant }, `${at}[${index}]`, resolve),
        ),
      ),
    );
  }
  const breaks: string[] = [];
  const unexpected = typesOf(after).filter((type) => !accepts(typesOf(before), type));
  if (unexpected.length > 0) {
    breaks.push(`${at}: may be ${unexpected.join(" or ")}, was ${typesOf(before).join(" or ")}`);
  }
  for (const [name, property] of Object.entries(before.properties ?? {})) {
    const now = after.properties?.[name];
    if (now === undefined) {
      breaks.push(`${at}.${name} is gone`);
      continue;
    }
    if (before.required?.includes(name) && !after.required?.includes(name)) {
      breaks.push(`${at}.${name} may be missing`);
    }
    breaks.push(...breaksForReaders({ before: property, after: now }, `${at}.${name}`, resolve));
  }
  return [...breaks, ...ofParts({ before, after }, at, resolve, breaksForReaders)];
}

/** Of items and of values of a map. */
function ofParts(
  { before, after }: Versions,
  at: string,
  resolve: CompareOptions,
  compare: typeof breaksForSenders,
): string[] {
  const breaks: string[] = [];
  if (before.items !== undefined && after.items !== undefined) {
    breaks.push(...compare({ before: before.items, after: after.items }, `${at}[]`, resolve));
  }
  const [was, is] = [additional(before), additional(after)];
  if (was !== undefined && is !== undefined) {
    breaks.push(...compare({ before: was, after: is }, `${at}.*`, resolve));
  }
  return breaks;
}

/** The schema of further properties, where there may be any of one. */
const additional = ({ additionalProperties }: Schema): Schema | undefined =>
  typeof additionalProperties === "object" ? additionalProperties : undefined;

/** The alternatives of a schema, each with what holds for all of them. */
function variantsOf(schema: Schema): Schema[] {
  const { oneOf, anyOf, ...rest } = schema;
  const variants = oneOf ?? anyOf;
  return variants === undefined ? [schema] : variants.map((variant) => ({ ...rest, ...variant }));
}

/** The values that the schema before lists and the one after refuses; or `anything else`, where it had no list. */
function refusedValues(before: Schema, after: Schema): unknown[] {
  const [was, is] = [valuesOf(before), valuesOf(after)];
  if (is === undefined) {
    return [];
  }
  return was === undefined ? ["anything else"] : was.filter((value) => !is.includes(value));
}

const valuesOf = ({ enum: values, const: only }: Schema): readonly unknown[] | undefined =>
  values ?? (only === undefined ? undefined : [only]);

const typesOf = ({ type }: Schema): readonly string[] => (type === undefined ? [] : [type].flat());

const accepts = (types: readonly string[], type: string): boolean =>
  types.length === 0 || types.includes(type) || (type === "integer" && types.includes("number"));

const higher = (is: number, was: number) => is > was;
const lower = (is: number, was: number) => is < was;
const limits = [
  ["minLength", higher],
  ["minimum", higher],
  ["minItems", higher],
  ["maxLength", lower],
  ["maximum", lower],
  ["maxItems", lower],
] as const;

/** The breaks of the alternative that fits best. */
const fewest = (all: readonly string[][]): string[] =>
  all.reduce((best, breaks) => (breaks.length < best.length ? breaks : best), all[0] ?? []);
