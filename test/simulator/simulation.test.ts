/** That a simulation of the operator as it is finds nothing, and that one of a broken operator does. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { expect, test, vi } from "vitest";
import type { RunCluster } from "../../operator/src/jobs/runs/cluster.ts";
import { isLong } from "../kit/long.ts";
import { calm, stormy } from "./profiles.ts";
import { simulate } from "./simulation.ts";

// Each takes some four seconds, and several times that beside others.
vi.setConfig({ testTimeout: 180_000 });

const PROJECTS = 40;
const SOMETHING = expect.arrayContaining([expect.any(String)]);

async function violationsOf(
  wrap: ((cluster: RunCluster) => RunCluster) | undefined,
  profile = stormy,
  occurrences = 3_000,
  seed = 5,
) {
  const options = profile(seed, occurrences, PROJECTS);
  const replicas = wrap ? { ...options.replicas, wrap } : options.replicas;
  const { violations } = await simulate({ ...options, replicas, maxViolations: 1 });
  return violations.map(({ text }) => text);
}

/** Patches as they would be sent by an operator that forgets something. */
const patching = (change: (patch: Partial<KubernetesObject> & { status?: object }) => object) => {
  return (cluster: RunCluster): RunCluster => ({
    ...cluster,
    patch: (resource, ref, patch, options) => cluster.patch(resource, ref, change(patch as object), options),
  });
};

test.each([
  ["calm", calm],
  ["stormy", stormy],
] as const)("an operator as it is does nothing wrong in %s weather", async (_name, profile) => {
  // The stage `simulate` of hack/test.sh decides ten thousand.
  expect(await violationsOf(undefined, profile, isLong ? 3_000 : 300)).toEqual([]);
});

test("an operator that writes without preconditions is found out", async () => {
  const careless = patching((patch) => {
    const { resourceVersion: _ignored, ...metadata } = patch.metadata ?? {};
    return { ...patch, metadata };
  });
  // Two have to write concurrently for that: with each of these seeds they soon do, as the operator was when they were chosen.
  const violations: string[] = [];
  for (const seed of [49, 43, 64, 31]) {
    if (violations.length === 0) {
      violations.push(...(await violationsOf(careless, stormy, 600, seed)));
    }
  }
  expect(violations).toEqual(SOMETHING);
});

test("an operator that takes finalizers off before the charge is found out", async () => {
  const hasty = patching((patch) => {
    const { metadata } = patch as { metadata?: { finalizers?: string[] } };
    return metadata?.finalizers ? { ...patch, metadata: { ...metadata, finalizers: [] } } : patch;
  });
  expect(await violationsOf(hasty)).toEqual(SOMETHING);
});

test("an operator that trusts a backdated request to cancel is found out", async () => {
  const credulous = patching((patch) => {
    const { status } = patch as { status?: { cancelEffectiveAt?: string; startedAt?: string } };
    return status?.cancelEffectiveAt
      ? { ...patch, status: { ...status, cancelEffectiveAt: "2026-01-01T00:00:00Z" } }
      : patch;
  });
  expect(await violationsOf(credulous)).toEqual(SOMETHING);
});

test("an operator that writes down another price is found out", async () => {
  const dear = patching((patch) => {
    const { status } = patch as { status?: { pricePerMinute?: string } };
    return status?.pricePerMinute ? { ...patch, status: { ...status, pricePerMinute: "9" } } : patch;
  });
  expect(await violationsOf(dear)).toEqual(SOMETHING);
});

test("an operator that counts what it missed twice is found out", async () => {
  const twice = patching((patch) => {
    const { status } = patch as { status?: { job?: { missed?: number } } };
    const { job } = status ?? {};
    return job?.missed === undefined
      ? patch
      : { ...patch, status: { ...status, job: { ...job, missed: job.missed + 1 } } };
  });
  expect(await violationsOf(twice)).toEqual(SOMETHING);
});
