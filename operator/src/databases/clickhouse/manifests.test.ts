import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { KubernetesObject } from "@slipway/controller-runtime";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type DatabaseCase, databaseOf } from "../../../../test/kit/databases/examples.ts";
import { desired } from "./manifests.ts";

const testdata = fileURLToPath(new URL("testdata", import.meta.url));
const built = (input: unknown) => desired(databaseOf(input as DatabaseCase));

const inputOf = (name: string) =>
  parse(readFileSync(join(testdata, name, "input.yaml"), "utf8")) as DatabaseCase;
const text = (objects: readonly KubernetesObject[]) => JSON.stringify(objects);

describe("a ClickHouse database", () => {
  test("runs a substitute for ClickHouse just as it runs ClickHouse: only the image is another, and what is recorded of it", () => {
    const real = inputOf("one");
    const image = "slipway.local/slipway/clickhouse:26.7";
    const features = { replication: false };
    const substitute = { ...real, image: { ...real.image, image, engine: "chdb" }, features };
    const without = (objects: readonly KubernetesObject[], reference: string) =>
      text(objects)
        .replaceAll(reference, "")
        .replaceAll(/"slipway.dev\/settings-hash":"\w+"/g, "")
        .replaceAll(/,"annotations":\{"slipway.dev\/image-features":"[^}]+\}"\}/g, "");
    const realImage = databaseOf(real).image.image;
    expect(text(built(substitute))).toContain(image);
    expect(without(built(substitute), image)).toBe(without(built(real), realImage));
  });

  test("has no password in its configuration, and every port but those with TLS is closed", () => {
    const objects = built(inputOf("three"));
    const configs = objects.filter(({ kind }) => kind === "ConfigMap");
    expect(configs).toHaveLength(2);
    expect(text(objects)).not.toContain("password-of");
    expect(text(configs)).not.toMatch(/\b(http_port|tcp_port|interserver_http_port|tcp_port:)\b/);
    expect(text(configs)).not.toContain("prometheus");
  });

  test("keeps its files when the plan changes: pods that are not replaced yet keep their own", () => {
    const small = inputOf("one");
    const spec = { ...small.project.spec, plan: "analytics-business" };
    const large = { ...small, project: { ...small.project, spec } };
    const config = (objects: readonly KubernetesObject[]) =>
      text(objects.filter(({ kind }) => kind === "ConfigMap"));
    expect(config(built(large))).toBe(config(built(small)));
    expect(text(built(large))).not.toBe(text(built(small)));
  });
});
