import type { V1Deployment, V1EnvVar } from "@kubernetes/client-node";
import { expect } from "vitest";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { leader, systemNamespace } from "./operator.ts";

/** One of the platform's Deployments. */
type Process = "slipway-operator" | "slipway-api-server";

const OPERATOR = "slipway-operator";

/**
 * Gives the operator other settings, as the chart's values would, and resolves once an operator leads that has them: immediately
 * where it has them already.
 * @param settings environment variables
 * @returns gives it back the settings that it had
 */
export function setOperator(settings: Readonly<Record<string, string>>): Promise<() => Promise<void>> {
  return setProcess(OPERATOR, settings, leads);
}

/** The same of the API server; resolves once all of its pods have the settings. */
export function setApiServer(settings: Readonly<Record<string, string>>): Promise<() => Promise<void>> {
  return setProcess("slipway-api-server", settings, () => Promise.resolve());
}

async function setProcess(
  name: Process,
  settings: Readonly<Record<string, string>>,
  settled: (env: V1EnvVar[]) => Promise<void>,
): Promise<() => Promise<void>> {
  const where = { name, namespace: systemNamespace };
  const before = environmentOf(await cluster.apps.readNamespacedDeployment(where));
  if (
    Object.entries(settings).every((one) =>
      before.some(({ name, value }) => name === one[0] && value === one[1]),
    )
  ) {
    return () => Promise.resolve();
  }
  const others = before.filter((variable) => settings[variable.name] === undefined);
  const given = Object.entries(settings).map(([variable, value]) => ({ name: variable, value }));
  const set = async (env: V1EnvVar[]) => {
    await roll(where, env);
    await settled(env);
  };
  await set([...others, ...given]);
  return () => set(before);
}

function environmentOf({ spec }: V1Deployment): V1EnvVar[] {
  return spec?.template.spec?.containers[0]?.env ?? [];
}

async function roll(where: { name: Process; namespace: string }, env: V1EnvVar[]): Promise<void> {
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
}

/** Those that leave are not listed as replicas any more; one of them may hold the Lease still. */
async function leads(env: V1EnvVar[]): Promise<void> {
  await eventually(async () => {
    const { spec } = await cluster.core.readNamespacedPod({
      name: await leader(),
      namespace: systemNamespace,
    });
    expect(spec?.containers[0]?.env).toEqual(env.map((variable) => expect.objectContaining(variable)));
  });
}
