import { type KubernetesObject, Store } from "@slipway/controller-runtime";
import type { Deployment } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import { withEarlierCopies } from "./earlier.ts";

const ref = { namespace: "slipway-org-alpha", name: "shop" };
const project = exampleWorker(ref, {
  variableGroups: ["mail", "new"],
  envsFrom: [{ name: "vault" }, { name: "shop-env", references: [{ reference: "db.host" }] }],
});
const now = new Map([
  ["shop-env", "shop-refs-00000000000a"],
  ["VariableGroup/mail", "shop-refs-00000000000b"],
  ["VariableGroup/new", "shop-refs-00000000000b"],
  ["Secret/vault", "shop-refs-00000000000c"],
]);
const previous = (sharedVariables?: Deployment["sharedVariables"]): Deployment => ({
  id: "d1",
  status: "succeeded",
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: "d1",
  updatedImage: false,
  image: { reference: "app" },
  settings: { plan: "basic", envsFrom: project.spec.envsFrom },
  sharedVariables,
});
const copy = { source: "VariableGroup/mail", resolved: "shop-refs-000000000001" };
const direct = { source: "Secret/vault", resolved: "shop-refs-000000000002", direct: true };

function returned(to: Deployment, ...names: string[]) {
  const secrets = new Store({});
  secrets.replace(
    names.map(
      (name) => ({ metadata: { ...ref, name, uid: name, resourceVersion: "1" } }) as KubernetesObject,
    ),
    "1",
  );
  const { earlier, resolved } = withEarlierCopies(project, to, now, { secrets });
  return { groups: earlier.spec.variableGroups, resolved: Object.fromEntries(resolved) };
}

test("a version has the groups and the copies that it served with, and values of references as they are now", () => {
  expect(returned(previous([copy, direct]), copy.resolved)).toEqual({
    groups: ["mail"],
    resolved: { "shop-env": "shop-refs-00000000000a", "VariableGroup/mail": copy.resolved },
  });
});

test("one from before the first group was attached has none", () => {
  expect(returned(previous())).toEqual({
    groups: [],
    resolved: { "shop-env": "shop-refs-00000000000a" },
  });
});

test("where a copy is deleted, those of now take its place", () => {
  expect(returned(previous([copy, direct]))).toEqual({
    groups: ["mail", "new"],
    resolved: Object.fromEntries(now),
  });
});
