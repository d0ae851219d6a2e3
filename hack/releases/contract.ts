/** What users of a release rely on, and what another release breaks of it. */
import { generateCrds } from "@slipway/crds/generate";
import { parse } from "yaml";
import { openApiDocument } from "../../api-server/src/openapi/document.ts";
import { routes } from "../../api-server/src/routes.ts";
import { readPodTemplates } from "./pod-templates.ts";
import { processRegistries } from "./registries.ts";
import {
  breaksForReaders,
  breaksForSenders,
  type CompareOptions,
  resolverOf,
  type Schema,
} from "./schema-changes.ts";

interface Media {
  schema?: Schema;
}

interface Operation {
  parameters?: readonly { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { required?: boolean; content: Readonly<Record<string, Media>> };
  responses: Readonly<Record<string, { $ref?: string; content?: Readonly<Record<string, Media>> }>>;
}

interface Version {
  name: string;
  served: boolean;
  schema: { openAPIV3Schema: Schema };
}

/** A release as its users see it. It is recorded as JSON, without descriptions and examples. */
export interface Contract {
  /** The OpenAPI document's paths and components. */
  readonly api: {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: object;
  };
  /** Codes of failures, sorted. */
  readonly codes: readonly string[];
  /** Versions of custom resources, by the definition's name. */
  readonly resources: Readonly<Record<string, readonly Version[]>>;
  /** Hashes of templates of pods, which are replaced when theirs changes. */
  readonly podTemplates: Readonly<Record<string, string>>;
  /** Metrics by name. */
  readonly metrics: Readonly<Record<string, { readonly type: string; readonly labels: readonly string[] }>>;
}

/** The contract of these sources. */
export async function readContract(): Promise<Contract> {
  const { paths, components } = openApiDocument(routes, "") as unknown as Contract["api"];
  const codes = JSON.stringify({ paths, components }).matchAll(/"code":"([A-Z][A-Z_]+)"/g);
  const definitions = [...generateCrds()].map(
    ([, text]) => parse(text) as { metadata: { name: string }; spec: { versions: Version[] } },
  );
  const metrics = processRegistries().flatMap((registry) => registry.getMetricsAsArray());
  const contract = {
    api: { paths, components },
    codes: [...new Set([...codes].map(([, code = ""]) => code))].sort(),
    resources: Object.fromEntries(definitions.map(({ metadata, spec }) => [metadata.name, spec.versions])),
    podTemplates: readPodTemplates(),
    metrics: Object.fromEntries(
      metrics
        .map((metric) => metric as unknown as { name: string; type: string; labelNames?: string[] })
        .map(
          ({ name, type, labelNames }) => [name, { type, labels: [...(labelNames ?? [])].sort() }] as const,
        )
        .sort(([a], [b]) => a.localeCompare(b)),
    ),
  };
  return withoutProse(contract) as Contract;
}

const PROSE = new Set(["description", "summary", "example", "examples", "title", "tags", "links"]);

/** A value of JSON without what only people read. A property of such a name stays: its value is a schema. */
function withoutProse(value: unknown, inProperties = false): unknown {
  if (Array.isArray(value)) {
    return value.map((entry) => withoutProse(entry));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const entries = Object.entries(value).filter(([key]) => inProperties || !PROSE.has(key));
  return Object.fromEntries(
    entries.map(([key, entry]) => [key, withoutProse(entry, key === "properties" && !inProperties)]),
  );
}

/** What a release breaks of the one before, a sentence each; empty when everything that worked still does. Pure. */
export function breaksOf(before: Contract, after: Contract): string[] {
  return [
    ...apiBreaks(before, after),
    ...missing(before.codes, after.codes).map((code) => `failure code ${code} is gone`),
    ...resourceBreaks(before, after),
    ...metricBreaks(before, after),
    ...templateBreaks(before, after),
  ];
}

function apiBreaks(before: Contract, after: Contract): string[] {
  const resolve = { before: resolverOf(before.api), after: resolverOf(after.api) };
  return Object.entries(before.api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const at = `${method.toUpperCase()} ${path}`;
      const now = after.api.paths[path]?.[method];
      return now === undefined ? [`${at} is gone`] : operationBreaks(operation, now, at, resolve);
    }),
  );
}

function operationBreaks(before: Operation, after: Operation, at: string, resolve: CompareOptions): string[] {
  const breaks: string[] = [];
  const was = new Map(
    (before.parameters ?? []).map((parameter) => [`${parameter.in} ${parameter.name}`, parameter]),
  );
  const is = new Map(
    (after.parameters ?? []).map((parameter) => [`${parameter.in} ${parameter.name}`, parameter]),
  );
  for (const [name, { required }] of is) {
    if (required && !was.get(name)?.required) {
      breaks.push(`${at}: parameter ${name} is required`);
    }
  }
  for (const [name, { schema }] of was) {
    const now = is.get(name)?.schema;
    breaks.push(
      ...(now === undefined
        ? [`${at}: parameter ${name} is gone`]
        : breaksForSenders({ before: schema, after: now }, `${at}: parameter ${name}`, resolve)),
    );
  }
  if (after.requestBody?.required && !before.requestBody?.required) {
    breaks.push(`${at}: a body is required`);
  }
  breaks.push(
    ...mediaBreaks(before.requestBody, after.requestBody, `${at}: body`, resolve, breaksForSenders),
  );
  for (const [status, response] of Object.entries(before.responses)) {
    const now = after.responses[status];
    breaks.push(
      ...(now === undefined
        ? [`${at}: answer ${status} is gone`]
        : mediaBreaks(
            resolve.before(response as Schema) as typeof response,
            resolve.after(now as Schema) as typeof now,
            `${at}: answer ${status}`,
            resolve,
            breaksForReaders,
          )),
    );
  }
  return breaks;
}

function mediaBreaks(
  before: { content?: Readonly<Record<string, Media>> } | undefined,
  after: { content?: Readonly<Record<string, Media>> } | undefined,
  at: string,
  resolve: CompareOptions,
  compare: typeof breaksForSenders,
): string[] {
  return Object.entries(before?.content ?? {}).flatMap(([type, { schema = {} }]) => {
    const now = after?.content?.[type];
    return now === undefined
      ? [`${at}: ${type} is gone`]
      : compare({ before: schema, after: now.schema ?? {} }, at, resolve);
  });
}

/** What is stored has to fit the new schema; what is read has to be what it was. */
function resourceBreaks(before: Contract, after: Contract): string[] {
  const resolve: CompareOptions = { before: (schema) => schema, after: (schema) => schema };
  return Object.entries(before.resources).flatMap(([name, versions]) =>
    versions
      .filter(({ served }) => served)
      .flatMap((version) => {
        const at = `${name} ${version.name}`;
        const now = after.resources[name]?.find(({ name, served }) => name === version.name && served);
        if (now === undefined) {
          return [`${at} is not served`];
        }
        const schemas = { before: version.schema.openAPIV3Schema, after: now.schema.openAPIV3Schema };
        return [...breaksForSenders(schemas, at, resolve), ...breaksForReaders(schemas, at, resolve)];
      }),
  );
}

function metricBreaks(before: Contract, after: Contract): string[] {
  return Object.entries(before.metrics).flatMap(([name, { type, labels }]) => {
    const now = after.metrics[name];
    if (now === undefined) {
      return [`metric ${name} is gone`];
    }
    const changed = now.type === type ? [] : [`metric ${name} is a ${now.type}, was a ${type}`];
    return [
      ...changed,
      ...missing(labels, now.labels).map((label) => `metric ${name} has no label ${label}`),
    ];
  });
}

/** What changes has to be a version more: `operator/src/workload/template-version.ts`. */
function templateBreaks({ podTemplates }: Contract, after: Contract): string[] {
  return Object.entries(podTemplates).flatMap(([name, hash]) => {
    const now = after.podTemplates[name];
    return now === hash
      ? []
      : [`pods of ${name} are ${now === undefined ? "not rendered any more" : "replaced"}`];
  });
}

const missing = (before: readonly string[], after: readonly string[]): string[] =>
  before.filter((one) => !after.includes(one));
