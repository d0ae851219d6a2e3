import { describe, expect, test } from "vitest";
import { breaksForReaders, breaksForSenders, resolverOf, type Schema } from "./schema-changes.ts";

const resolve = { before: (schema: Schema) => schema, after: (schema: Schema) => schema };
const text: Schema = { type: "string" };

const typed = (types: string[], rules: string[]): Schema => ({
  properties: { type: { enum: types }, image: text, port: text },
  "x-kubernetes-validations": rules.map((rule) => ({ rule })),
});

describe("who sends a value", () => {
  test.each<[string, Schema, Schema, string[]]>([
    ["a type that is refused", { type: ["string", "null"] }, text, ["x: null is refused"]],
    ["a type that is added", text, { type: ["string", "null"] }, []],
    ["an integer where numbers are taken", { type: "integer" }, { type: "number" }, []],
    ["a value that is refused", { enum: ["a", "b"] }, { enum: ["a"] }, ['x: "b" is refused']],
    ["a list where there was none", text, { ...text, enum: ["a"] }, ['x: "anything else" is refused']],
    ["a constant", { const: 1 }, { const: 2 }, ["x: 1 is refused"]],
    ["a lower limit", { maxLength: 9 }, { maxLength: 8 }, ["x: maxLength is 8, was 9"]],
    ["a higher limit", { maxLength: 9 }, { maxLength: 10 }, []],
    ["a minimum", {}, { minimum: 1 }, ["x: minimum is 1, was none"]],
    ["another pattern", { pattern: "a" }, { pattern: "b" }, ["x: pattern is b, was a"]],
    ["no pattern any more", { pattern: "a" }, {}, []],
    ["a rule", {}, { "x-kubernetes-validations": [{ rule: "self > 1" }] }, ["x: a rule was added: self > 1"]],
    [
      "a rule about a field that was there",
      { properties: { a: text } },
      { properties: { a: text }, "x-kubernetes-validations": [{ rule: "!has(self.a) || self.a == 'b'" }] },
      ["x: a rule was added: !has(self.a) || self.a == 'b'"],
    ],
    [
      "a rule about another value than the one that is new",
      typed(["http"], ["!has(self.image) || self.type == 'http'"]),
      typed(["http", "worker"], ["!has(self.image) || self.type == 'worker'"]),
      ["x: a rule was added: !has(self.image) || self.type == 'worker'"],
    ],
    [
      "rules that hold for a new value, too",
      typed(
        ["http", "job"],
        ["!has(self.port) || self.type in ['http', 'job']", "self.type != 'http' || has(self.port)"],
      ),
      typed(
        ["http", "job", "worker"],
        [
          "!has(self.port) || self.type in ['http', 'job', 'worker']",
          "!(self.type in ['http', 'worker']) || has(self.port)",
          "self.type != 'worker' || self.plan.startsWith('worker-')",
        ],
      ),
      [],
    ],
    [
      "a rule about a new field",
      typed(["http"], []),
      {
        ...typed(
          ["http"],
          ["!has(self.grace) || self.type == 'job'", "has(self.grace) || self.type == 'job'"],
        ),
        properties: { type: { enum: ["http"] }, image: text, port: text, grace: text },
      },
      ["x: a rule was added: has(self.grace) || self.type == 'job'"],
    ],
    [
      "a rule about a new part of a field",
      { properties: { scaling: { properties: { cpu: text } } } },
      {
        properties: { scaling: { properties: { cpu: text, requests: text } } },
        "x-kubernetes-validations": [
          { rule: "!has(self.scaling) || !has(self.scaling.requests) || self.type == 'http'" },
          { rule: "!has(self.scaling) || !has(self.scaling.cpu) || self.type == 'http'" },
          { rule: "(!has(self.scaling) || !has(self.scaling.requests)) && self.type == 'http'" },
        ],
      },
      [
        "x: a rule was added: !has(self.scaling) || !has(self.scaling.cpu) || self.type == 'http'",
        "x: a rule was added: (!has(self.scaling) || !has(self.scaling.requests)) && self.type == 'http'",
      ],
    ],
    [
      "rules by which a new field cannot be changed",
      typed(["http"], []),
      {
        ...typed(
          ["http"],
          [
            "!has(self.grace) || (has(oldSelf.grace) && self.grace == oldSelf.grace)",
            "!has(oldSelf.grace) || has(self.grace)",
            "!has(oldSelf.port) || has(self.port)",
          ],
        ),
        properties: { type: { enum: ["http"] }, image: text, port: text, grace: text },
      },
      ["x: a rule was added: !has(oldSelf.port) || has(self.port)"],
    ],
    [
      "a required field",
      { properties: { a: text } },
      { properties: { a: text }, required: ["a"] },
      ["x.a is required"],
    ],
    ["a field that is gone", { properties: { a: text } }, { properties: {} }, ["x.a is gone"]],
    ["a field that a map takes", { properties: { a: text } }, { additionalProperties: text }, []],
    ["a part of a list", { items: text }, { items: { type: "integer" } }, ["x[]: string is refused"]],
    [
      "a value of a map",
      { additionalProperties: text },
      { additionalProperties: { ...text, maxLength: 1 } },
      ["x.*: maxLength is 1, was none"],
    ],
    [
      "an alternative that is gone",
      { oneOf: [text, { type: "integer" }] },
      text,
      ["x[1]: integer is refused"],
    ],
    ["an alternative more", text, { anyOf: [{ type: "integer" }, text] }, []],
  ])("%s", (_, before, after, breaks) => {
    expect(breaksForSenders({ before, after }, "x", resolve)).toEqual(breaks);
  });
});

describe("who reads a value", () => {
  test.each<[string, Schema, Schema, string[]]>([
    ["a field that is gone", { properties: { a: text } }, {}, ["x.a is gone"]],
    ["a field more", {}, { properties: { a: text } }, []],
    [
      "a field that may be missing",
      { properties: { a: text }, required: ["a"] },
      { properties: { a: text } },
      ["x.a may be missing"],
    ],
    ["another type", text, { type: ["string", "null"] }, ["x: may be null, was string"]],
    ["a type less", { type: ["string", "null"] }, text, []],
    ["a value more of an enumeration", { enum: ["a"] }, { enum: ["a", "b"] }, []],
    [
      "an alternative more",
      { oneOf: [text] },
      { oneOf: [text, { type: "integer" }] },
      ["x[1]: may be integer, was string"],
    ],
    ["an alternative less", { oneOf: [text, { type: "integer" }] }, text, []],
  ])("%s", (_, before, after, breaks) => {
    expect(breaksForReaders({ before, after }, "x", resolve)).toEqual(breaks);
  });
});

test("a reference is resolved in its own document, and has to lead somewhere", () => {
  const document = (type: string) => ({ components: { schemas: { A: { type } } } });
  const own = { before: resolverOf(document("string")), after: resolverOf(document("integer")) };
  const schema = { $ref: "#/components/schemas/A" };
  expect(breaksForSenders({ before: schema, after: schema }, "x", own)).toEqual(["x: string is refused"]);
  expect(() => resolverOf({})(schema)).toThrow("#/components/schemas/A is not in the document");
});
