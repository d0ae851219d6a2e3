import { readFileSync } from "node:fs";
import { type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import { type Project, type ProjectStatus, parseCatalog } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import type { ProjectStores } from "../projects/stores.ts";
import { withState } from "./billable-changes.ts";
import { BillingSteps } from "./steps.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const ref = { namespace: "slipway-org-alpha", name: "shop" };
const clock = new FakeClock("2026-03-02T10:00:00Z");

/** The steps, beside a cluster that has some objects. */
function stepsOf(
  objects: readonly (KubernetesObject & { spec: object })[],
  { isOn = true, catalogOf = () => catalog } = {},
): BillingSteps {
  const children = [resources.deployments, resources.persistentVolumeClaims].map((resource) => {
    const store = new Store<KubernetesObject>({ clock });
    const own = objects.filter(({ kind }) => kind === resource.kind);
    store.replace(own as never, "1");
    return { resource, store };
  });
  return new BillingSteps({
    catalog: catalogOf,
    stores: { children } as unknown as ProjectStores,
    billableChanges: {
      isOn,
      report: (_, status, state) => {
        const before = status.billing?.changes ?? [];
        status.billing = {
          changes: [...withState(before, state, { at: () => clock.now(), known: undefined })],
        };
        return undefined;
      },
      reportDeletion: () => undefined,
      hasEnded: () => true,
    },
  });
}

const child = (kind: string, spec: object) => ({
  kind,
  metadata: { ...ref, uid: `uid-${kind}`, resourceVersion: "1" },
  spec,
});
const projectOf = (plan: string): Project => ({
  ...exampleProject(ref, { plan, instances: 1 }),
  metadata: { ...ref, uid: "uid-shop", resourceVersion: "1" },
});
const plansOf = ({ billing }: ProjectStatus) => billing?.changes.map(({ plan }) => plan) ?? [];

// Shows: docs/adr/0032-recorded-changes.md#decision: a spec that changed before the status was written
test("what was applied is reported of a rejected spec, where the status with it was not written", () => {
  const steps = stepsOf([child("Deployment", { replicas: 1 })]);
  steps.report(projectOf("basic"), {});
  const first: ProjectStatus = {};
  steps.reportRejected(projectOf("no-such-plan"), first);
  expect(plansOf(first)).toEqual(["basic"]);
  const lost = structuredClone(first);
  steps.report(projectOf("premium"), lost);
  expect(plansOf(lost)).toEqual(["basic", "premium"]);
  const again = structuredClone(first);
  steps.reportRejected(projectOf("no-such-plan"), again);
  expect(plansOf(again)).toEqual(["basic", "premium"]);
  // Another operator has reported since.
  const other = structuredClone(again);
  steps.report(projectOf("basic"), other);
  const kept = structuredClone(other);
  steps.reportRejected(projectOf("no-such-plan"), kept);
  expect(plansOf(kept)).toEqual(["basic", "premium", "basic"]);
});

test("a volume that is no longer requested is billed by what it has", () => {
  const claim = child("PersistentVolumeClaim", { resources: { requests: { storage: "7Gi" } } });
  const status: ProjectStatus = {};
  stepsOf([claim]).report(projectOf("basic"), status);
  expect(status.billing?.changes.map(({ billedGb }) => billedGb)).toEqual([7]);
});

test("where plans are not metered nothing is computed or reported", () => {
  const catalogOf = () => {
    throw new Error("is not read");
  };
  const status: ProjectStatus = {};
  const steps = stepsOf([], { isOn: false, catalogOf });
  expect(steps.report(projectOf("basic"), status)).toBeUndefined();
  expect(steps.reportRejected(projectOf("basic"), status)).toBeUndefined();
  expect(status).toEqual({});
});
