/**
 * Turns the JSON Schema that zod writes into the structural schema that Kubernetes takes. It translates two things
 * (`additionalProperties: false`, which pruning and strict field validation mean anyway, and key order) and refuses
 * all else that Kubernetes forbids, naming the path: a repair would make the cluster and the API disagree.
 */

/** A node of a structural schema. */
export interface StructuralSchema {
  type: "object" | "array" | "string" | "integer" | "number" | "boolean";
  description?: string;
  properties?: Record<string, StructuralSchema>;
  required?: string[];
  items?: StructuralSchema;
  additionalProperties?: StructuralSchema;
  maxLength?: number;
  maxItems?: number;
  maxProperties?: number;
  [keyword: string]: unknown;
}

/** Thrown when a schema cannot become structural; `path` is dotted, from the resource's root. */
export class NotStructural extends Error {
  readonly path: string;

  constructor(path: string, problem: string) {
    super(`${path}: ${problem}`);
    this.name = "NotStructural";
    this.path = path;
  }
}

const TYPES = new Set(["object", "array", "string", "integer", "number", "boolean"]);
const FORMATS = new Set(["int32", "int64", "date-time"]);
/** Keywords that pass; the order is that of the output. */
const KEYWORDS = [
  "description",
  "type",
  "format",
  "nullable",
  "default",
  "enum",
  "pattern",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
  "required",
  "properties",
  "additionalProperties",
  "items",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-validations",
];

type Json = Record<string, unknown>;

interface Where {
  readonly path: string;
  /** Whether the apiserver can pair this node with its old self: not below a list that has no keys. */
  readonly correlatable: boolean;
}

/** @throws NotStructural naming the first path that Kubernetes would refuse or that is not bounded or described */
export function toStructural(schema: unknown, path: string): StructuralSchema {
  return convert(schema, { path, correlatable: true });
}

function convert(schema: unknown, where: Where): StructuralSchema {
  const node = asObject(schema, where);
  const fail = (problem: string): never => {
    throw new NotStructural(where.path, problem);
  };
  for (const key of Object.keys(node)) {
    if (!KEYWORDS.includes(key)) {
      fail(`${key} is not allowed`);
    }
  }
  if (typeof node.type !== "string" || !TYPES.has(node.type)) {
    fail("needs exactly one type");
  }
  // A list's own description speaks for items that are no objects.
  const speaks = typeof node.description === "string" && node.description !== "";
  if (!speaks && !(where.path.endsWith("[]") && node.type !== "object")) {
    fail("needs a description");
  }
  checkBounds(node, fail);
  checkRules(node, where, fail);

  const result: Json = {};
  for (const key of KEYWORDS) {
    if (node[key] === undefined) {
      continue;
    }
    if (key === "properties") {
      result.properties = convertProperties(node, where);
    } else if (key === "items") {
      result.items = convertItems(node, where, fail);
    } else if (key === "additionalProperties") {
      if (node.additionalProperties === false) {
        continue;
      }
      result.additionalProperties = convert(node.additionalProperties, { ...where, path: `${where.path}.*` });
    } else {
      result[key] = node[key];
    }
  }
  if (
    node.type === "object" &&
    result.properties === undefined &&
    result.additionalProperties === undefined
  ) {
    fail("an object needs properties or additionalProperties, else all of it is pruned");
  }
  if (result.properties !== undefined && result.additionalProperties !== undefined) {
    fail("properties and additionalProperties exclude each other");
  }
  return result as StructuralSchema;
}

function asObject(schema: unknown, { path }: Where): Json {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
    throw new NotStructural(path, "is not a schema");
  }
  return schema as Json;
}

function convertProperties(node: Json, where: Where): Record<string, StructuralSchema> {
  const properties = asObject(node.properties, where);
  return Object.fromEntries(
    Object.entries(properties).map(([name, child]) => [
      name,
      convert(child, { ...where, path: `${where.path}.${name}` }),
    ]),
  );
}

function convertItems(node: Json, where: Where, fail: (problem: string) => never): StructuralSchema {
  const listType = node["x-kubernetes-list-type"];
  const items = convert(node.items, {
    path: `${where.path}[]`,
    correlatable: where.correlatable && listType === "map",
  });
  if (listType === "map") {
    const keys = node["x-kubernetes-list-map-keys"];
    if (!Array.isArray(keys) || keys.length === 0) {
      fail("a list of type map needs x-kubernetes-list-map-keys");
    }
    for (const key of keys as string[]) {
      if (!items.required?.includes(key)) {
        fail(`its key ${key} must be a required property of the items`);
      }
    }
  } else if (listType === "set" && (items.type === "object" || items.type === "array")) {
    fail("a list of type set needs scalar items");
  }
  return items;
}

/** Everything has an end, or the apiserver must assume the worst when it counts the cost of a rule. */
function checkBounds(node: Json, fail: (problem: string) => never): void {
  if (node.type === "string" && node.enum === undefined && node.maxLength === undefined) {
    fail("needs maxLength");
  }
  if (node.type === "array") {
    if (node.maxItems === undefined) {
      fail("needs maxItems");
    }
    if (node.items === undefined) {
      fail("needs items");
    }
    if (!["atomic", "set", "map"].includes(String(node["x-kubernetes-list-type"]))) {
      fail("needs x-kubernetes-list-type");
    }
  } else if (node["x-kubernetes-list-type"] !== undefined) {
    fail("x-kubernetes-list-type is for arrays");
  }
  if (typeof node.additionalProperties === "object" && node.maxProperties === undefined) {
    fail("needs maxProperties");
  }
  if (node.additionalProperties === true) {
    fail("additionalProperties must be a schema");
  }
  if (node.format !== undefined && !FORMATS.has(String(node.format))) {
    fail(`format ${String(node.format)} is not allowed`);
  }
  // RE2, which the apiserver uses, has neither.
  if (typeof node.pattern === "string" && /\(\?[=!<]|\\[1-9]/.test(node.pattern)) {
    fail("pattern must not use lookaround or backreferences");
  }
}

function checkRules(node: Json, where: Where, fail: (problem: string) => never): void {
  const rules = (node["x-kubernetes-validations"] ?? []) as readonly { rule?: unknown; message?: unknown }[];
  for (const { rule, message } of rules) {
    if (typeof rule !== "string" || rule === "") {
      fail("a rule needs CEL");
    }
    if (typeof message !== "string" || message === "" || message.includes("\n")) {
      fail("a rule needs a message of one line");
    }
    if (String(rule).includes("oldSelf") && !where.correlatable) {
      fail("a rule on oldSelf cannot stand below a list without keys");
    }
  }
}
