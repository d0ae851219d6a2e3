import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as crds from "@slipway/crds";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { crdOf } from "../../crds/src/generate/crd.ts";

/**
 * What the compiler does not check: it knows that every condition, reason and status field that is set is in its catalog or schema, and not
 * whether anybody sets it.
 */

const root = join(import.meta.dirname, "../..");

const isAssignment = (kind: ts.SyntaxKind): boolean =>
  kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;

/** What files of the operator, of the API server and of libraries name and set, tests apart. */
const { named, set } = wordsOf(
  globSync("{operator,api-server,packages/*}/src/**/*.ts", { cwd: root })
    .filter((file) => !/\.test\.ts$|\/(testing|testdata)\//.test(file))
    .map((file) => ts.createSourceFile(file, readFileSync(join(root, file), "utf8"), ts.ScriptTarget.Latest)),
);

/** Strings, those of types apart, and members of catalogs; and names of properties that are assigned. */
function wordsOf(files: readonly ts.SourceFile[]): { named: Set<string>; set: Set<string> } {
  const named = new Set<string>();
  const set = new Set<string>();
  for (const file of files) {
    const visit = (node: ts.Node): void => {
      if (ts.isLiteralTypeNode(node)) {
        return;
      }
      if (ts.isStringLiteralLike(node)) {
        named.add(node.text);
      }
      if (
        ts.isPropertyAccessExpression(node) &&
        /(Conditions|Reasons)$/.test(node.expression.getText(file))
      ) {
        named.add(node.name.text);
      }
      if (ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node)) {
        set.add(node.name.getText(file));
      }
      if (
        ts.isBinaryExpression(node) &&
        isAssignment(node.operatorToken.kind) &&
        ts.isPropertyAccessExpression(node.left)
      ) {
        set.add(node.left.name.text);
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return { named, set };
}

const catalogs = Object.entries(crds)
  .filter(([name, value]) => /(Conditions|Reasons)$/.test(name) && !Array.isArray(value))
  .map(([name, value]) => [name, Object.keys(value)] as const);

describe("every name is set somewhere", () => {
  it.each(catalogs)("of %s", (_, names) => {
    expect(names.filter((name) => !named.has(name))).toEqual([]);
  });

  it("of all kinds", () => {
    const kinds = ["project", "domainClaim", "jobRun", "build", "backup", "gitConnection"];
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

it.each(crds.kinds.map((kind) => [kind.kind, kind] as const))(
  "every field of the status of a %s is set somewhere",
  (_, kind) => {
    const fields = [...fieldsOfPart(kind, "status")];
    expect(fields.length).toBeGreaterThan(2);
    expect(fields.filter((field) => !set.has(field) && !copied.has(field))).toEqual([]);
  },
);
