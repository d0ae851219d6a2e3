import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as crds from "@slipway/crds";
import ts from "typescript";
import { describe, expect, it } from "vitest";

/** What the compiler does not hold of conditions: it knows that every type and reason that is set is catalogued. */

const root = join(import.meta.dirname, "../..");

/** Every string and property name of the operator's and the API server's own files, tests apart. */
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
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("file.ts", text, ts.ScriptTarget.Latest));
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
