import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { backupConditions } from "./backup.ts";
import { buildConditions } from "./build.ts";
import { deletedProjectConditions } from "./deletedproject.ts";
import { domainClaimConditions } from "./domainclaim.ts";
import { crdOf } from "./generate/crd.ts";
import { gitConnectionConditions } from "./gitconnection.ts";
import { jobRunConditions } from "./jobrun.ts";
import { type Kind, kinds } from "./kinds.ts";
import { logDrainConditions } from "./logdrain.ts";
import { projectConditions } from "./project/conditions.ts";

const docs = new URL("../../docs/resources/", import.meta.url);
/** None of a kind that reports nothing. */
const conditionsOf: Partial<Record<Kind["kind"], object>> = {
  Project: projectConditions,
  JobRun: jobRunConditions,
  Build: buildConditions,
  DomainClaim: domainClaimConditions,
  Backup: backupConditions,
  GitConnection: gitConnectionConditions,
  DeletedProject: deletedProjectConditions,
  LogDrain: logDrainConditions,
};

describe.each(kinds.map((kind) => [kind.kind, kind] as const))("the page of %s", (_, kind) => {
  const page = readFileSync(new URL(`${kind.singular}.md`, docs), "utf8");
  const { properties = {} } = crdOf(kind).spec.versions[0]?.schema.openAPIV3Schema ?? {};

  it.each(["spec", "status"])("names every field of the %s", (part) => {
    const missing = Object.keys(properties[part]?.properties ?? {}).filter(
      (field) => !page.includes(`\`${field}\``) && !page.includes(`\`${field}.`),
    );
    expect(missing).toEqual([]);
  });

  it("names every condition", () => {
    expect(
      Object.keys(conditionsOf[kind.kind] ?? {}).filter((type) => !page.includes(`| \`${type}\` |`)),
    ).toEqual([]);
  });

  it("shows how to wait for one, as the end-to-end tests do, unless it reports nothing", () => {
    if (kind.status === undefined) {
      expect(page).not.toContain("kubectl wait");
      return;
    }
    const [, type = ""] =
      new RegExp(`^    kubectl wait .*--for=condition=(\\w+) ${kind.singular}/\\S+$`, "m").exec(page) ?? [];
    expect(Object.keys(conditionsOf[kind.kind] ?? {})).toContain(type);
  });

  it("shows the example that is tested", () => {
    const [, shown = ""] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const [, file = ""] = /\[(examples\/[a-z-]+\.yaml)\]/.exec(page) ?? [];
    expect(parse(shown)).toEqual(parse(readFileSync(new URL(file, docs), "utf8")));
  });
});
