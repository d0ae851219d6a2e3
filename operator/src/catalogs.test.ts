import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as crds from "@slipway/crds";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { crdOf } from "../../crds/src/generate/crd.ts";

/**
 * What the compiler does not hold: it knows that every condition, reason and status field that is set is in its catalog or schema, and not
 * whether anybody sets it.
 */

const root = join(import.meta.dirname, "../..");

/** Every string and name of a property in the operator's and the API server's own files, tests apart. */
const used = new Set(
  globSync("{operator,api-server}/src/**/*.ts", { cwd: root })
    .filter((file) => !/\.test\.ts$|\/(testing|testdata|simulator|histories)\//.test(file))
    .flatMap((file) => wordsOf(readFileSync(join(root, file), "utf8"))),
);

function wordsOf(text: string): string[] {
  const words: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) words.push(node.text);
    if (ts.isPropertyAccessExpression(node)) words.push(node.name.text);
    if (ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node))
      words.push(node.name.getText(source));
    ts.forEachChild(node, visit);
  };
  const source = ts.createSourceFile("file.ts", text, ts.ScriptTarget.Latest);
  visit(source);
  return words;
}

const catalogs = Object.entries(crds)
  .filter(([name, value]) => /(Conditions|Reasons)$/.test(name) && !Array.isArray(value))
  .map(([name, value]) => [name, Object.keys(value)] as const);

describe("every name is set somewhere", () => {
  it.each(catalogs)("of %s", (_, names) => {
    expect(names.filter((name) => !used.has(name))).toEqual([]);
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

it.each(crds.kinds.map((kind) => [kind.kind, kind] as const))(
  "every field of the status of a %s is set somewhere",
  (_, kind) => {
    const { status } = crdOf(kind).spec.versions[0]?.schema.openAPIV3Schema.properties ?? {};
    const fields = new Set(fieldsOf(status ?? {}));
    expect(fields.size).toBeGreaterThan(2);
    expect([...fields].filter((field) => !used.has(field))).toEqual([]);
  },
);
