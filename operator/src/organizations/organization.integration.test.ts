import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { fieldManagers } from "@slipway/crds";
import { systemClock } from "@slipway/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  eventually,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
} from "../../../test/kit/operator/harness.ts";
import { PROVISIONED_ANNOTATION } from "./desired/namespace.ts";
import { policyNames } from "./desired/namespace-policies.ts";
import { RECOUNT_MS } from "./reconciler.ts";

let cluster: TestCluster;
let operator: TestOperator;
let ledger: () => Promise<string[]> = async () => ["alpha"];
const start = () => startOperator(cluster, { listOrganizations: () => ledger() });

beforeAll(async () => {
  cluster = await startCluster();
  operator = await start();
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
});

const namespaceOf = (id: string) =>
  cluster.client.getOrUndefined<KubernetesObject>(resources.namespaces, { name: `slipway-org-${id}` });
const provisioned = (id: string) =>
  eventually(async () => {
    const namespace = await namespaceOf(id);
    return namespace?.metadata?.annotations?.[PROVISIONED_ANNOTATION] !== undefined && namespace;
  });

describe("organizations", () => {
  test("each gets a namespace that is marked as provisioned once every policy is in place", async () => {
    const namespace = await provisioned("alpha");
    expect(namespace.metadata?.labels).toMatchObject({
      "slipway.dev/organization": "alpha",
      "slipway.dev/role": "organization",
      "pod-security.kubernetes.io/enforce": "baseline",
      "pod-security.kubernetes.io/warn": "restricted",
    });
    const inside = { namespace: "slipway-org-alpha" };
    const policies = await cluster.client.listAll(resources.networkPolicies, inside);
    expect(policies.map(({ metadata }) => metadata?.name).sort()).toEqual(
      [policyNames.defaultDeny, policyNames.egress, policyNames.sameNamespace].sort(),
    );
    expect(await cluster.client.listAll(resources.resourceQuotas, inside)).toHaveLength(1);
    expect(await cluster.client.listAll(resources.limitRanges, inside)).toHaveLength(1);
  });

  test("none is marked as provisioned while its quota is not counted, and one that is stays so", async () => {
    const uncounted = await startCluster({ countsQuotas: false });
    const other = await startOperator(uncounted, { listOrganizations: async () => ["beta"] });
    try {
      const quota = { namespace: "slipway-org-beta", name: policyNames.quota };
      const { spec } = await eventually(() =>
        uncounted.client.getOrUndefined<KubernetesObject & { spec: { hard: object } }>(
          resources.resourceQuotas,
          quota,
        ),
      );
      const isGuarded = async () => {
        const found = await uncounted.client.get(resources.namespaces, { name: quota.namespace });
        return found.metadata?.annotations?.[PROVISIONED_ANNOTATION] !== undefined;
      };
      const count = (status: object) =>
        uncounted.client.patch(resources.resourceQuotas, quota, { status }, { subresource: "status" });
      // As of a kind that the quota controller does not know yet.
      await count({ hard: spec.hard, used: { pods: "0" } });
      await untilUnchanged(uncounted);
      expect(await isGuarded()).toBe(false);
      await count({ used: Object.fromEntries(Object.keys(spec.hard).map((what) => [what, "0"])) });
      await eventually(isGuarded);
      await uncounted.client.patch(resources.resourceQuotas, quota, { spec: { hard: { pods: "1" } } });
      await untilUnchanged(uncounted);
      expect(await isGuarded()).toBe(true);
    } finally {
      await other.stop();
      await uncounted.stop();
    }
  });

  test("one whose quota stays uncounted gets another quota", async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
    const uncounted = await startCluster({ countsQuotas: false });
    const other = await startOperator(uncounted, { listOrganizations: async () => ["gamma"], clock });
    try {
      const ref = { namespace: "slipway-org-gamma", name: policyNames.quota };
      const find = () => uncounted.client.getOrUndefined(resources.resourceQuotas, ref);
      const passedOver = await eventually(find);
      await untilUnchanged(uncounted);
      expect((await find())?.metadata?.uid).toBe(passedOver.metadata?.uid);
      aheadMs += RECOUNT_MS;
      // Whatever reconciles the organization.
      const labels = { touched: "yes" };
      await uncounted.client.patch(resources.resourceQuotas, ref, { metadata: { labels } });
      await eventually(async () => {
        const quota = await find();
        return quota !== undefined && quota.metadata?.uid !== passedOver.metadata?.uid;
      });
    } finally {
      await other.stop();
      await uncounted.stop();
    }
  });

  test("policies that are deleted or edited are restored", async () => {
    const deny = { namespace: "slipway-org-alpha", name: policyNames.defaultDeny };
    const quota = { namespace: "slipway-org-alpha", name: policyNames.quota };
    await cluster.client.delete(resources.networkPolicies, deny);
    await cluster.client.patch(resources.resourceQuotas, quota, { spec: { hard: { pods: "1" } } });
    const labels = { "pod-security.kubernetes.io/enforce": "privileged" };
    await cluster.client.patch(resources.namespaces, { name: "slipway-org-alpha" }, { metadata: { labels } });

    await eventually(() => cluster.client.getOrUndefined(resources.networkPolicies, deny));
    await eventually(async () => {
      const live = await cluster.client.get<KubernetesObject & { spec: { hard: { pods: string } } }>(
        resources.resourceQuotas,
        quota,
      );
      return live.spec.hard.pods !== "1";
    });
    await eventually(
      async () =>
        (await namespaceOf("alpha"))?.metadata?.labels?.["pod-security.kubernetes.io/enforce"] === "baseline",
    );
  });

  test("a rule that is added to a policy by hand is removed again", async () => {
    const ref = { namespace: "slipway-org-alpha", name: policyNames.egress };
    const open = [{ op: "add", path: "/spec/egress/-", value: {} }];
    await cluster.client.patch(resources.networkPolicies, ref, open, { type: "json" });
    await eventually(async () => {
      const live = await cluster.client.get<KubernetesObject & { spec: { egress: unknown[] } }>(
        resources.networkPolicies,
        ref,
      );
      return live.spec.egress.length === 2;
    });
  });

  test("a policy of an earlier version, which this one does not have, is deleted", async () => {
    const labels = { "slipway.dev/organization": "alpha" };
    const annotations = { "slipway.dev/applied-by": fieldManagers.organization };
    const metadata = { namespace: "slipway-org-alpha", name: "slipway-earlier", labels, annotations };
    const kinds = [resources.networkPolicies, resources.limitRanges, resources.resourceQuotas];
    for (const kind of kinds) {
      const spec = kind === resources.networkPolicies ? { podSelector: {} } : {};
      await cluster.client.create<KubernetesObject & { spec: object }>(kind, { metadata, spec });
    }
    for (const kind of kinds) {
      await eventually(async () => (await cluster.client.getOrUndefined(kind, metadata)) === undefined);
    }
  });

  test("while the ledger is unavailable everything stays and is restored, after a restart too", async () => {
    await operator.stop();
    ledger = async () => {
      throw new Error("connection refused");
    };
    operator = await start();
    const deny = { namespace: "slipway-org-alpha", name: policyNames.defaultDeny };
    await cluster.client.delete(resources.networkPolicies, deny);
    await eventually(() => cluster.client.getOrUndefined(resources.networkPolicies, deny));
    expect((await namespaceOf("alpha"))?.metadata?.deletionTimestamp).toBeUndefined();
  });

  test("nothing is written when all is unchanged", async () => {
    await operator.stop();
    ledger = async () => ["alpha", "beta"];
    operator = await start();
    await provisioned("beta");
    const before = await untilUnchanged(cluster);
    expect(before).toBeGreaterThan(0);
    await operator.stop();
    operator = await start();
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    expect((await cluster.operatorWrites()).slice(before)).toEqual([]);
  });
});
