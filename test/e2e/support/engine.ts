import { expect } from "vitest";
import { parse, stringify } from "yaml";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { leader, systemNamespace } from "./operator.ts";

const place = { namespace: systemNamespace, name: "slipway-builds" };
const operators = { namespace: systemNamespace, labelSelector: "app.kubernetes.io/name=slipway-operator" };

/**
 * Has all builds made by an engine, as the chart's `builds.engine` does, and by other settings besides.
 * @returns what puts the settings back
 */
export async function useEngine(
  engine: "auto" | "buildkit" | "buildah",
  more: object = {},
): Promise<() => Promise<void>> {
  const { data } = await cluster.core.readNamespacedConfigMap(place);
  const before = data?.["builds.yaml"] ?? "";
  await write(stringify({ ...(parse(before) as object), engine, ...more }));
  return () => write(before);
}

/** The settings, and operators that have begun with them: the file that others have is written again when the kubelet likes. */
async function write(settings: string): Promise<void> {
  const map = await cluster.core.readNamespacedConfigMap(place);
  await cluster.core.replaceNamespacedConfigMap({
    ...place,
    body: { ...map, data: { ...map.data, "builds.yaml": settings } },
  });
  const { items } = await cluster.core.listNamespacedPod(operators);
  const old = items.map(({ metadata }) => metadata?.name ?? "");
  await cluster.core.deleteCollectionNamespacedPod(operators);
  await eventually(async () => expect(old).not.toContain(await leader()));
}
