import type { KubernetesObject } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { differenceOf } from "./golden-difference.ts";

const object = (kind: string, spec: object): KubernetesObject & { spec: object } => ({
  kind,
  metadata: { name: "shop" },
  spec,
});

test("the difference of equal objects is empty, whatever the order of their fields", () => {
  expect(differenceOf([object("Service", { a: 1, b: 2 })], [object("Service", { b: 2, a: 1 })])).toBe("");
});

test("a difference has the changed lines of an object, and objects that were added or removed", () => {
  const spec = (replicas: number, image: string) => ({
    replicas,
    template: { containers: [{ image }], pause: true },
  });
  const before = [object("StatefulSet", spec(1, "one")), object("Role", {})];
  const after = [object("StatefulSet", spec(1, "two")), object("Secret", { a: 1 })];
  expect(differenceOf(before, after)).toBe(`removed: Role shop
changed: StatefulSet shop > spec > template
     containers:
-      - image: one
+      - image: two
     pause: true
added after StatefulSet shop: Secret shop
+kind: Secret
+metadata:
+  name: shop
+spec:
+  a: 1
`);
});

test("a difference has the order of objects that changed places", () => {
  const [a, b] = [object("Role", {}), object("Secret", {})];
  expect(differenceOf([a, b], [b, a])).toBe("order: Secret shop, Role shop\n");
});
