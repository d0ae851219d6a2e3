import { PatchStrategy, setHeaderOptions, type V1Deployment, type V1EnvVar } from "@kubernetes/client-node";
import { expect } from "vitest";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { leader, systemNamespace } from "./operator.ts";

/** One of the platform's Deployments. */
type Process = "slipway-operator" | "slipway-api-server";

const OPERATOR = "slipway-operator";

/** A variable as it is wanted; `$patch` removes it. */
type Wanted = V1EnvVar & { $patch?: "delete" };

/**
 * Gives the operator other settings, as the chart's values would, and resolves once an operator leads that has them: immediately
 * where it has them already.
 * @param settings environment variables
 * @returns gives back what these variables were; others are left as they are by then
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
  settled: (env: readonly Wanted[]) => Promise<void>,
): Promise<() => Promise<void>> {
  const where = { name, namespace: systemNamespace };
  const current = environmentOf(await cluster.apps.readNamespacedDeployment(where));
  const wanted = Object.entries(settings).map(([variable, value]) => ({ name: variable, value }));
  const before = wanted.map(
    ({ name: variable }): Wanted =>
      current.find((one) => one.name === variable) ?? { name: variable, $patch: "delete" },
  );
  if (wanted.every(({ value }, index) => before[index]?.value === value)) {
    return () => Promise.resolve();
  }
  const set = async (env: readonly Wanted[]) => {
    await rollVariables(where, env);
    await settled(env);
  };
  await set(wanted);
  return () => set(before);
}

/** A variable of the operator as it is now. */
export async function operatorVariable(name: string): Promise<string | undefined> {
  const where = { name: OPERATOR, namespace: systemNamespace };
  const current = environmentOf(await cluster.apps.readNamespacedDeployment(where));
  return current.find((variable) => variable.name === name)?.value;
}

function environmentOf({ spec }: V1Deployment): V1EnvVar[] {
  return spec?.template.spec?.containers[0]?.env ?? [];
}

/**
 * Mounts a ConfigMap of the platform's namespace in the operator, which an administrator may, too; resolves once its pods have it.
 * @returns takes it away again
 */
export async function mountInOperator(configMap: string, mountPath: string): Promise<() => Promise<void>> {
  const set = (isWanted: boolean) =>
    roll({ name: OPERATOR, namespace: systemNamespace }, (container) => ({
      volumes: [
        isWanted ? { name: configMap, configMap: { name: configMap } } : removed({ name: configMap }),
      ],
      containers: [
        {
          name: container,
          volumeMounts: [isWanted ? { name: configMap, mountPath, readOnly: true } : removed({ mountPath })],
        },
      ],
    }));
  await set(true);
  return () => set(false);
}

const removed = (entry: object) => ({ ...entry, $patch: "delete" });

/** Merges variables by their names: what other files have set meanwhile stays. */
const rollVariables = (where: { name: Process; namespace: string }, env: readonly Wanted[]): Promise<void> =>
  roll(where, (name) => ({ containers: [{ name, env }] }));

/** Merges into the pods' template, and resolves once all pods have it. */
async function roll(
  where: { name: Process; namespace: string },
  specOf: (container: string | undefined) => object,
): Promise<void> {
  const { spec: before } = await cluster.apps.readNamespacedDeployment(where);
  const body = { spec: { template: { spec: specOf(before?.template.spec?.containers[0]?.name) } } };
  const options = setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch);
  await cluster.apps.patchNamespacedDeployment({ ...where, body }, options);
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
async function leads(env: readonly Wanted[]): Promise<void> {
  await eventually(async () => {
    const { spec } = await cluster.core.readNamespacedPod({
      name: await leader(),
      namespace: systemNamespace,
    });
    const names = (spec?.containers[0]?.env ?? []).map((variable) => variable.name);
    for (const { $patch, ...variable } of env) {
      if ($patch === "delete") {
        expect(names).not.toContain(variable.name);
      } else {
        expect(spec?.containers[0]?.env).toContainEqual(expect.objectContaining(variable));
      }
    }
  });
}
