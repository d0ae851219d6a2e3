import { describe, expect, it } from "vitest";
import { findMissing } from "./subset.ts";

describe("findMissing", () => {
  it.each<[string, unknown, unknown]>([
    ["defaults that the apiserver added", { spec: { a: 1 } }, { spec: { a: 1, b: 2 }, status: {} }],
    ["normalised quantities", { limits: { cpu: "1000m" } }, { limits: { cpu: "1" } }],
    ["a normalised size limit", { emptyDir: { sizeLimit: "1024Mi" } }, { emptyDir: { sizeLimit: "1Gi" } }],
    ["empty values that were dropped", { a: [], b: {}, c: false, d: 0, e: "", f: { g: {} } }, {}],
    ["an empty object that was kept", { podSelector: {} }, { podSelector: {} }],
    ["undefined and null", { a: undefined, b: null }, { b: 3 }],
    [
      "a sidecar that another added",
      { containers: [{ name: "a" }] },
      { containers: [{ name: "b" }, { name: "a" }] },
    ],
    ["a finalizer that another added", { finalizers: ["a"] }, { finalizers: ["b", "a"] }],
    ["defaults within an atomic list", { ports: [{ port: 53 }] }, { ports: [{ port: 53, protocol: "TCP" }] }],
  ])("accepts %s", (_name, desired, live) => {
    expect(findMissing(desired, live)).toBeUndefined();
  });

  it.each<[string, unknown, unknown, string]>([
    ["an edited value", { spec: { a: 1 } }, { spec: { a: 2 } }, "spec.a"],
    ["a removed value", { spec: { a: 1 } }, { spec: {} }, "spec.a"],
    ["a removed object", { spec: { a: 1 } }, {}, "spec"],
    ["true set to absent", { a: true }, {}, "a"],
    ["false set to true", { a: false }, { a: true }, "a"],
    ["equal amounts where no quantity is", { value: "1000m" }, { value: "1" }, "value"],
    ["a changed quantity", { limits: { cpu: "1" } }, { limits: { cpu: "2" } }, "limits.cpu"],
    ["a named item that is gone", { env: [{ name: "a" }] }, { env: [{ name: "b" }] }, "env.a"],
    [
      "a named item that changed",
      { env: [{ name: "a", value: "1" }] },
      { env: [{ name: "a" }] },
      "env.a.value",
    ],
    ["a longer list of values", { args: ["a"] }, { args: ["a", "b"] }, "args"],
    ["another order of values", { args: ["a", "b"] }, { args: ["b", "a"] }, "args.0"],
    ["an item added to an atomic list", { from: [{ a: 1 }] }, { from: [{ a: 1 }, { a: 2 }] }, "from"],
    ["a narrowed empty rule", { ingress: [{}] }, { ingress: [{ from: [{ a: 1 }] }] }, "ingress.0"],
    ["a list in place of an object", { a: { b: 1 } }, { a: [1] }, "a"],
    ["a lost finalizer", { finalizers: ["a"] }, { finalizers: ["b"] }, "finalizers"],
  ])("finds %s", (_name, desired, live, path) => {
    expect(findMissing(desired, live)).toBe(path);
  });
});
