import { expect } from "vitest";
import { parse, stringify } from "yaml";
import { cluster, exec } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { acquireExclusive } from "./exclusive.ts";
import { leader, systemNamespace } from "./operator.ts";

const place = { namespace: systemNamespace, name: "slipway-builds" };
const operators = { namespace: systemNamespace, labelSelector: "app.kubernetes.io/name=slipway-operator" };

/**
 * Has all builds made by an engine, as the chart's `builds.engine` does, and by other settings besides. Until the settings are
 * back, no other file has builds or the platform's settings to itself: its own builds would be made by this engine.
 * @returns what puts the settings back
 */
export async function useEngine(
  engine: "auto" | "buildkit" | "buildah",
  more: object = {},
): Promise<() => Promise<void>> {
  const release = await acquireExclusive("builds", "settings");
  let before: string | undefined;
  const undo = async (): Promise<void> => {
    try {
      await (before === undefined ? undefined : write(before));
    } finally {
      release();
    }
  };
  try {
    const { data } = await cluster.core.readNamespacedConfigMap(place);
    before = data?.["builds.yaml"] ?? "";
    await write(stringify({ ...(parse(before) as object), engine, ...more }));
  } catch (error) {
    await undo();
    throw error;
  }
  return undo;
}

/** The settings, and operators that have begun with them: the file that others have is written again when the kubelet likes. */
async function write(settings: string): Promise<void> {
  const map = await cluster.core.readNamespacedConfigMap(place);
  await cluster.core.replaceNamespacedConfigMap({
    ...place,
    body: { ...map, data: { ...map.data, "builds.yaml": settings } },
  });
  const old = await operatorPods();
  await cluster.core.deleteCollectionNamespacedPod(operators);
  await eventually(
    async () => {
      const pods = await operatorPods();
      expect(pods.filter((name) => old.includes(name))).toEqual([]);
      for (const name of pods) {
        // A busy kubelet gives a new pod what it had of the ConfigMap before.
        if ((await fileOf(name)) !== settings) {
          await cluster.core.deleteNamespacedPod({ namespace: systemNamespace, name });
          throw new Error(`${name} began with other settings of builds`);
        }
      }
      expect(pods).toContain(await leader());
    },
    { within: 180_000 },
  );
}

async function operatorPods(): Promise<string[]> {
  const { items } = await cluster.core.listNamespacedPod(operators);
  return items.map(({ metadata }) => metadata?.name ?? "");
}

/** What a pod has of the settings of builds. @throws Error while its container does not run */
async function fileOf(pod: string): Promise<string> {
  const script = 'process.stdout.write(require("node:fs").readFileSync("/etc/slipway/builds/builds.yaml"))';
  const { exitCode, output } = await exec(systemNamespace, pod, "operator", ["node", "--eval", script]);
  expect(exitCode, output).toBe(0);
  return output;
}
