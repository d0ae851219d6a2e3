import type { V1Deployment, V1EnvVar } from "@kubernetes/client-node";
import { expect } from "vitest";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { leader, systemNamespace } from "./operator.ts";

const where = { name: "slipway-operator", namespace: systemNamespace };

/**
 * Gives the operator other settings, as the chart's values would, and resolves once an operator leads that has them.
 * @param settings environment variables
 * @returns gives it back the settings that it had
 */
export async function setOperator(settings: Readonly<Record<string, string>>): Promise<() => Promise<void>> {
  const deployment = await cluster.apps.readNamespacedDeployment(where);
  const before = environmentOf(deployment);
  const others = before.filter(({ name }) => settings[name] === undefined);
  await roll([...others, ...Object.entries(settings).map(([name, value]) => ({ name, value }))]);
  return () => roll(before);
}

function environmentOf({ spec }: V1Deployment): V1EnvVar[] {
  return spec?.template.spec?.containers[0]?.env ?? [];
}

async function roll(env: V1EnvVar[]): Promise<void> {
  const path = "/spec/template/spec/containers/0/env";
  await cluster.apps.patchNamespacedDeployment({ ...where, body: [{ op: "replace", path, value: env }] });
  await eventually(async () => {
    const { metadata, spec, status } = await cluster.apps.readNamespacedDeployment(where);
    expect(status?.observedGeneration).toBe(metadata?.generation);
    const { replicas, updatedReplicas, availableReplicas } = status ?? {};
    const wanted = spec?.replicas;
    expect({ replicas, updatedReplicas, availableReplicas }).toEqual({
      replicas: wanted,
      updatedReplicas: wanted,
      availableReplicas: wanted,
    });
  });
  // Those that leave are not listed as replicas any more; one of them may hold the Lease still.
  await eventually(async () => {
    const { spec } = await cluster.core.readNamespacedPod({
      name: await leader(),
      namespace: systemNamespace,
    });
    expect(spec?.containers[0]?.env).toEqual(env.map((variable) => expect.objectContaining(variable)));
  });
}
