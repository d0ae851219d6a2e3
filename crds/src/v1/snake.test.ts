import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { projectSpecFields } from "../project/spec-fields.ts";
import { camelCase, type Snake, snakeCase, snakeSchema, toCamel, toOpenApi, toSnake } from "./snake.ts";

/** Every key that stands anywhere in a schema. */
function keysOf(schema: z.core.$ZodType): string[] {
  if (schema instanceof z.ZodOptional) {
    return keysOf(schema.unwrap());
  }
  if (schema instanceof z.ZodArray) {
    return keysOf(schema.element);
  }
  if (!(schema instanceof z.ZodObject)) {
    return [];
  }
  return Object.entries(schema.shape as z.core.$ZodShape).flatMap(([key, field]) => [key, ...keysOf(field)]);
}

describe("snake_case and camelCase", () => {
  it("lead to each other for every key of a Project, and no two keys meet", () => {
    const keys = [...new Set(keysOf(projectSpecFields))];
    expect(keys.length).toBeGreaterThan(50);
    for (const key of keys) {
      expect(camelCase(snakeCase(key))).toBe(key);
    }
    expect(new Set(keys.map(snakeCase)).size).toBe(keys.length);
  });

  it("lead to each other for any value", () => {
    const key = fc.stringMatching(/^[a-z]{1,4}([A-Z][a-z]{1,4}){0,2}$/);
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("value")),
        fc.dictionary(key, tie("value"), { noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(value, (one) => {
        expect(toCamel(toSnake(one))).toEqual(one);
      }),
    );
  });

  it("spells the specification's names", () => {
    expect(["dirPathToPersist", "ingressWhiteList", "cron", "includePrereleases"].map(snakeCase)).toEqual([
      "dir_path_to_persist",
      "ingress_white_list",
      "cron",
      "include_prereleases",
    ]);
    expectTypeOf<Snake<{ dirPath: { toPersist: string }[]; a?: number }>>().toEqualTypeOf<{
      dir_path: { to_persist: string }[];
      a?: number;
    }>();
  });
});

describe("snakeSchema", () => {
  const schema = z.strictObject({
    outerList: z.array(z.strictObject({ innerName: z.string().max(3) })).max(1),
    maybeNull: z.string().nullable().optional().describe("Sometimes."),
  });
  const snake = snakeSchema(schema);

  it("accepts what the schema accepts, and keeps the rules of fields and lists", () => {
    expect(snake.safeParse({ outer_list: [{ inner_name: "abc" }], maybe_null: null }).success).toBe(true);
    expect(snake.safeParse({ outer_list: [{ inner_name: "abcd" }] }).success).toBe(false);
    expect(snake.safeParse({ outer_list: [{ inner_name: "a" }, { inner_name: "b" }] }).success).toBe(false);
    expect(snake.safeParse({ outer_list: [], extra: 1 }).success).toBe(false);
    expect(snake.safeParse({ outerList: [] }).success).toBe(false);
  });

  it("keeps descriptions", () => {
    expect(toOpenApi(snake)).toMatchObject({ properties: { maybe_null: { description: "Sometimes." } } });
  });

  it("spells control characters as every client's regular expressions do", () => {
    const { pattern } = toOpenApi(z.string().regex(/^[^\p{Cc}:]*$/u));
    expect(pattern).toBe("^[^\\u0000-\\u001f\\u007f-\\u009f:]*$");
    expect(new RegExp(String(pattern)).test("a\u0085b")).toBe(false);
  });

  it("refuses what custom resources do not have", () => {
    expect(() => snakeSchema(z.strictObject({ map: z.record(z.string(), z.string()) }))).toThrow(/record/);
  });
});
