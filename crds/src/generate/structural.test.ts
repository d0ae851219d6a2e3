import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { text } from "../fields.ts";
import { kinds } from "../kinds.ts";
import { crdOf } from "./crd.ts";
import { generateCrds } from "./index.ts";
import { NotStructural, toStructural } from "./structural.ts";

const some = text(0, 5, "Some text.");
const inObject = (field: z.ZodType) => z.strictObject({ field }).describe("A part.");
const structural = (schema: z.ZodType) =>
  toStructural(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input" }), "spec");

describe("toStructural", () => {
  it("keeps what Kubernetes accepts and drops the closing of objects, which pruning does", () => {
    expect(structural(inObject(some))).toEqual({
      description: "A part.",
      type: "object",
      required: ["field"],
      properties: { field: { description: "Some text.", type: "string", maxLength: 5 } },
    });
  });

  const list = z.array(inObject(some).describe("An item.")).max(2).describe("A list.");
  const onOldSelf = inObject(some)
    .describe("An item.")
    .meta({ "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "fixed" }] });

  const refused: [string, z.ZodType, string, RegExp][] = [
    ["a union", z.union([some, z.int()]).describe("Either."), "spec.field", /(anyOf|oneOf) is not allowed/],
    ["an id, from which references come", some.meta({ id: "shared" }), "spec", /definitions is not allowed/],
    ["free-form values", z.any().describe("Anything."), "spec.field", /needs exactly one type/],
    ["a string without an end", z.string().describe("Long."), "spec.field", /needs maxLength/],
    ["a list without an end", z.array(some).describe("Long."), "spec.field", /needs maxItems/],
    ["a list that does not say how it merges", list, "spec.field", /needs x-kubernetes-list-type/],
    [
      "a map without an end",
      z.record(z.string(), some).describe("A map."),
      "spec.field",
      /needs maxProperties/,
    ],
    ["a field that is not described", z.boolean(), "spec.field", /needs a description/],
    [
      "an object that names nothing",
      z.looseObject({}).describe("Open."),
      "spec.field",
      /additionalProperties|maxProperties/,
    ],
    ["an unknown format", z.email().max(9).describe("Mail."), "spec.field", /format email/],
    [
      "a lookahead",
      z
        .string()
        .max(9)
        .regex(/^(?=a)/)
        .describe("Odd."),
      "spec.field",
      /lookaround/,
    ],
    ["a set of objects", list.meta({ "x-kubernetes-list-type": "set" }), "spec.field", /needs scalar items/],
    [
      "a map of items that lack its key",
      list.meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] }),
      "spec.field",
      /key name must be a required property/,
    ],
    [
      "a rule on changes below a list without keys",
      z.array(onOldSelf).max(2).meta({ "x-kubernetes-list-type": "atomic" }).describe("A list."),
      "spec.field[]",
      /oldSelf/,
    ],
    [
      "a rule without a message",
      some.meta({ "x-kubernetes-validations": [{ rule: "true", message: "" }] }),
      "spec.field",
      /needs a message/,
    ],
  ];
  it.each(refused)("refuses %s and names its path", (_, field, path, problem) => {
    const attempt = () => structural(inObject(field));
    expect(attempt).toThrow(NotStructural);
    expect(attempt).toThrow(problem);
    expect(attempt).toThrow(new RegExp(`^${path.replace(/[.[\]]/g, "\\$&")}: `));
  });
});

describe("the committed definitions", () => {
  it("are what the schemas say now, and nothing else lies beside them", () => {
    const root = new URL("../../../", import.meta.url);
    const generated = generateCrds();
    for (const [path, content] of generated) {
      expect(readFileSync(new URL(path, root), "utf8") === content, path).toBe(true);
    }
    expect(
      readdirSync(new URL("crds/generated/", root))
        .map((file) => `crds/generated/${file}`)
        .sort(),
    ).toEqual([...generated.keys()].sort());
  });

  it.each(kinds.map((kind) => [kind.kind, kind] as const))("of %s show columns that exist", (_, kind) => {
    const crd = crdOf(kind);
    const root = crd.spec.versions[0]?.schema.openAPIV3Schema;
    for (const { jsonPath } of kind.columns) {
      if (jsonPath.startsWith(".metadata") || jsonPath.includes("[?")) {
        continue;
      }
      const found = jsonPath
        .slice(1)
        .split(".")
        .reduce((at, key) => at?.properties?.[key], root);
      expect(found, jsonPath).toBeDefined();
    }
  });
});
