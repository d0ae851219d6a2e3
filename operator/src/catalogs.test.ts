import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as crds from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { crdOf } from "../../crds/src/generate/crd.ts";
import {
  childrenOf,
  isSyntaxNode,
  parseTypeScript,
  type SyntaxNode,
  stringOf,
} from "../../hack/lib/syntax.ts";

/**
 * What the compiler does not check: it knows that every condition, reason and status field that is set is in its catalog or schema, and not
 * whether anybody sets it.
 */

const root = join(import.meta.dirname, "../..");

/** What files of the operator, of the API server, of the collector and of libraries name and set, tests apart. */
const { named, set } = wordsOf(
  globSync("{operator,api-server,collector,packages/*}/src/**/*.ts", { cwd: root }).filter(
    (file) => !/\.test\.ts$|\/(testing|testdata)\//.test(file),
  ),
);

/** Strings, those of types apart, and members of catalogs; and names of properties that are assigned. */
function wordsOf(files: readonly string[]): { named: Set<string>; set: Set<string> } {
  const named = new Set<string>();
  const set = new Set<string>();
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    const textOf = ({ start, end }: SyntaxNode): string => text.slice(start, end);
    const visit = (node: SyntaxNode): void => {
      const { type, left, object, property } = node;
      if (type === "TSLiteralType") {
        return;
      }
      const string = stringOf(node);
      if (string !== undefined) {
        named.add(string);
      }
      if (isMember(node) && isSyntaxNode(object) && /(Conditions|Reasons)$/.test(textOf(object))) {
        named.add(textOf(property as SyntaxNode));
      }
      if (type === "ObjectExpression") {
        for (const one of childrenOf(node)) {
          if (one.type === "Property" && one.kind === "init" && !one.method && isSyntaxNode(one.key)) {
            set.add(textOf(one.key));
          }
        }
      }
      if (type === "AssignmentExpression" && isSyntaxNode(left) && isMember(left)) {
        set.add(textOf(left.property as SyntaxNode));
      }
      childrenOf(node).forEach(visit);
    };
    visit(parseTypeScript(file, text).program);
  }
  return { named, set };
}

/** `x.name`, and not `x[name]`, which names nothing. */
function isMember({ type, computed }: SyntaxNode): boolean {
  return type === "MemberExpression" && computed === false;
}

const catalogs = Object.entries(crds)
  .filter(([name, value]) => /(Conditions|Reasons)$/.test(name) && !Array.isArray(value))
  .map(([name, value]) => [name, Object.keys(value)] as const);

describe("every name is set somewhere", () => {
  it.each(catalogs)("of %s", (_, names) => {
    expect(names.filter((name) => !named.has(name))).toEqual([]);
  });

  it("of all kinds", () => {
    const kinds = [
      "project",
      "domainClaim",
      "jobRun",
      "build",
      "backup",
      "gitConnection",
      "deletedProject",
      "logDrain",
    ];
    expect(catalogs.map(([name]) => name).sort()).toEqual(
      [...kinds.flatMap((kind) => [`${kind}Conditions`, `${kind}Reasons`]), "commonReasons"].sort(),
    );
  });
});

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
}

const fieldsOf = ({ properties = {}, items }: Schema): string[] => [
  ...Object.entries(properties).flatMap(([name, schema]) => [name, ...fieldsOf(schema)]),
  ...(items ? fieldsOf(items) : []),
];

const fieldsOfPart = (kind: crds.Kind, part: "spec" | "status"): Set<string> =>
  new Set(fieldsOf(crdOf(kind).spec.versions[0]?.schema.openAPIV3Schema.properties?.[part] ?? {}));

/** Statuses keep whole copies of parts of a Project's spec. */
const copied = new Set(
  crds.kinds.filter(({ kind }) => kind === "Project").flatMap((kind) => [...fieldsOfPart(kind, "spec")]),
);

it.each(crds.kinds.filter(({ status }) => status).map((kind) => [kind.kind, kind] as const))(
  "every field of the status of a %s is set somewhere",
  (_, kind) => {
    const fields = [...fieldsOfPart(kind, "status")];
    expect(fields.length).toBeGreaterThan(2);
    expect(fields.filter((field) => !set.has(field) && !copied.has(field))).toEqual([]);
  },
);
