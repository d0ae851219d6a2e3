import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GROUP, kinds, VERSION } from "@slipway/crds";
import { expect, test } from "vitest";
import { parse } from "yaml";
import {
  FIRST_TEMPLATE_VERSION,
  NEWEST_TEMPLATE_VERSION,
} from "../../operator/src/workload/template-version.ts";
import { chartDir } from "./render.ts";

const read = (path: string): string => readFileSync(join(chartDir, path), "utf8");

test("the annotations for Artifact Hub name every custom resource", () => {
  const { annotations } = parse(read("Chart.yaml")) as { annotations: Record<string, string> };
  const listed = parse(annotations["artifacthub.io/crds"] ?? "") as {
    kind: string;
    version: string;
    name: string;
  }[];
  const named = listed.map(({ kind, version, name }) => ({ kind, version, name }));
  const expected = kinds.map(({ kind, plural }) => ({ kind, version: VERSION, name: `${plural}.${GROUP}` }));
  expect(named).toHaveLength(expected.length);
  expect(named).toEqual(expect.arrayContaining(expected));
});

test("the versions of pods' templates that the values take are those that the operator can render", () => {
  const schema = JSON.parse(read("values.schema.json")) as {
    properties: { pods: { properties: { templateVersion: object } } };
  };
  expect(schema.properties.pods.properties.templateVersion).toEqual({
    type: "integer",
    minimum: FIRST_TEMPLATE_VERSION,
    maximum: NEWEST_TEMPLATE_VERSION,
  });
});
