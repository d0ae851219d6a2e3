import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  defaultRuntimeCatalog,
  parseBaseImages,
  parseRuntimeCatalog,
  publicRuntimes,
  runtimeIds,
} from "./catalog.ts";

const upstream = parseBaseImages(readFileSync(new URL("../base-images.yaml", import.meta.url), "utf8"));

describe("the catalog that comes with the platform", () => {
  test("has every runtime that the planner knows", () => {
    expect(defaultRuntimeCatalog().runtimes.map(({ id }) => id)).toEqual([...runtimeIds]);
  });

  test("has an upstream image for every version", () => {
    for (const runtime of publicRuntimes(defaultRuntimeCatalog(), upstream)) {
      const whole = defaultRuntimeCatalog().runtimes.find(({ id }) => id === runtime.id);
      expect(runtime).toMatchObject({ available: true, versions: whole?.versions });
      expect(runtime.default_version).toBe(whole?.default_version ?? null);
    }
  });
});

describe("clients", () => {
  test("see no images", () => {
    const text = JSON.stringify(publicRuntimes(defaultRuntimeCatalog(), upstream));
    expect(text).not.toMatch(/docker\.io|image|slim/);
  });

  test("are offered the versions that there are images for, and a default among them", () => {
    const images = parseBaseImages(`{node: {"22": "registry.example/base/node:22"}}`);
    const shown = publicRuntimes(defaultRuntimeCatalog(), images);
    expect(shown.find(({ id }) => id === "node")).toEqual({
      id: "node",
      name: "Node.js",
      available: true,
      versions: ["22"],
      default_version: "22",
    });
    expect(shown.find(({ id }) => id === "php")).toMatchObject({ available: false, default_version: "8.4" });
    expect(shown.find(({ id }) => id === "static")?.available).toBe(false);
    expect(shown.find(({ id }) => id === "dockerfile")?.available).toBe(true);
  });

  test("are offered nothing where nothing is built", () => {
    const shown = publicRuntimes(defaultRuntimeCatalog(), undefined);
    expect(shown.filter(({ available }) => available)).toEqual([]);
  });
});

test.each([
  [
    "a default that is no version",
    `runtimes: [{id: node, name: N, versions: ["24"], default_version: "22"}]`,
    "default_version",
  ],
  ["versions without a default", `runtimes: [{id: node, name: N, versions: ["24"]}]`, "default_version"],
  ["a runtime that nobody can plan for", `runtimes: [{id: cobol, name: C, versions: []}]`, "runtimes.0.id"],
  [
    "a runtime twice",
    `runtimes: [{id: static, name: S, versions: []}, {id: static, name: S, versions: []}]`,
    "twice",
  ],
  ["an image field", `runtimes: [{id: static, name: S, versions: [], image: x}]`, "image"],
])("%s is refused", (_, yaml, message) => {
  expect(() => parseRuntimeCatalog(yaml)).toThrow(message);
});

test.each(["node:24 AS x", "node:24\nRUN id", "$IMAGE", "-x", '"node"'])(
  "the base image %j is refused",
  (image) => {
    expect(() => parseBaseImages(JSON.stringify({ node: { "24": image } }))).toThrow("node.24");
  },
);
