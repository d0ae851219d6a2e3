import { z } from "zod";

/** The one place where camelCase of custom resources and snake_case of `/v1` meet. */

/** `dirPathToPersist` → `dir_path_to_persist`, on types. */
export type SnakeCase<S extends string> = S extends `${infer Head}${infer Tail}`
  ? `${Head extends Uppercase<Head> ? (Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`) : Head}${SnakeCase<Tail>}`
  : S;

/** A value's type with every key in snake_case, all the way down. */
export type Snake<T> = T extends readonly (infer Item)[]
  ? Snake<Item>[]
  : T extends object
    ? { [K in keyof T as K extends string ? SnakeCase<K> : K]: Snake<T[K]> }
    : T;

/** `dirPathToPersist` → `dir_path_to_persist`. */
export function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** `dir_path_to_persist` → `dirPathToPersist`. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function mapKeys(value: unknown, rename: (key: string) => string): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => mapKeys(item, rename));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [rename(key), mapKeys(inner, rename)]),
  );
}

/** A value with its keys in snake_case. For values of our schemas, none of which holds a map with keys of a user. */
export function toSnake<T>(value: T): Snake<T> {
  return mapKeys(value, snakeCase) as Snake<T>;
}

/** The way back. Keys that are camelCase already come out the same, so callers refuse unknown keys first. */
export function toCamel(value: unknown): unknown {
  return mapKeys(value, camelCase);
}

/**
 * The same schema with snake_case keys. Field rules (lengths, patterns, CIDR, cron) stay; rules that span the fields of
 * an object are left to the camelCase schema, through which every body runs after it.
 * @throws TypeError on a schema kind that custom resources do not use
 */
export function snakeSchema<S extends z.ZodType>(schema: S): z.ZodType<Snake<z.output<S>>> {
  return convert(schema) as unknown as z.ZodType<Snake<z.output<S>>>;
}

function convert(schema: z.core.$ZodType): z.ZodType {
  if (schema instanceof z.ZodObject) {
    return describe(schema, snakeObject(schema.shape));
  }
  if (schema instanceof z.ZodOptional) {
    return describe(schema, convert(schema.unwrap()).optional());
  }
  if (schema instanceof z.ZodNullable) {
    return describe(schema, convert(schema.unwrap()).nullable());
  }
  if (schema instanceof z.ZodArray) {
    const element = convert(schema.element);
    return element === schema.element ? schema : schema.clone({ ...schema.def, element });
  }
  if (
    schema instanceof z.ZodString ||
    schema instanceof z.ZodNumber ||
    schema instanceof z.ZodBoolean ||
    schema instanceof z.ZodEnum ||
    schema instanceof z.ZodLiteral
  ) {
    return schema;
  }
  throw new TypeError(`no snake_case form for ${schema._zod.def.type}`);
}

/** A strict object from a camelCase shape. */
export function snakeObject(shape: z.core.$ZodShape): z.ZodObject {
  return z.strictObject(
    Object.fromEntries(Object.entries(shape).map(([key, field]) => [snakeCase(key), convert(field)])),
  );
}

function describe(from: z.ZodType, to: z.ZodType): z.ZodType {
  const description = from.meta()?.description;
  return description === undefined ? to : to.describe(description);
}

/** Control characters, as every regular expression engine spells them; `\p{Cc}` is unknown to many clients' ones. */
const CONTROL = "\\u0000-\\u001f\\u007f-\\u009f";

/** JSON Schema for the OpenAPI document: draft 2020-12, without what only Kubernetes reads. */
export function toOpenApi(schema: z.ZodType, io: "input" | "output" = "input"): Record<string, unknown> {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    target: "draft-2020-12",
    io,
    override: ({ jsonSchema }) => {
      for (const key of Object.keys(jsonSchema)) {
        if (key.startsWith("x-kubernetes-")) {
          delete jsonSchema[key];
        }
      }
      if (jsonSchema.pattern !== undefined) {
        jsonSchema.pattern = jsonSchema.pattern.replaceAll("\\p{Cc}", CONTROL);
      }
    },
  });
  return json;
}
