/** Values for a chart that may be of an earlier release: its schema refuses what has been added since. */

import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { run } from "../lib/exec.ts";

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly additionalProperties?: unknown;
}

const schema: z.ZodType<Schema> = z.looseObject({
  properties: z.lazy(() => z.record(z.string(), schema)).optional(),
  additionalProperties: z.unknown().optional(),
});

const FILE = "values.schema.json";

/** The schema of a chart's values. @param chart folder, or archive as `helm package` makes it @throws Error */
export async function valuesSchema(chart: string): Promise<Schema> {
  const text = (await stat(chart)).isDirectory()
    ? await readFile(join(chart, FILE), "utf8")
    : await run("tar", ["-xzOf", chart, `slipway/${FILE}`]);
  return schema.parse(JSON.parse(text));
}

/**
 * The values that a schema has, and the paths of those that it refuses: members of an object without `additionalProperties` that are not
 * among its `properties`. Pure.
 */
export function knownValues(
  { properties, additionalProperties }: Schema,
  values: Readonly<Record<string, unknown>>,
): { known: Record<string, unknown>; unknown: string[] } {
  const known: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [key, value] of Object.entries(values)) {
    const member = properties?.[key];
    if (member === undefined && additionalProperties === false) {
      unknown.push(key);
    } else if (member !== undefined && isMapping(value)) {
      const inner = knownValues(member, value);
      known[key] = inner.known;
      unknown.push(...inner.unknown.map((path) => `${key}.${path}`));
    } else {
      known[key] = value;
    }
  }
  return { known, unknown };
}

/** Whether a value is one of named values, as YAML's mappings are. */
export const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
