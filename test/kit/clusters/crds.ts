import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { customResource, type KubeClient, resources } from "@slipway/controller-runtime";
import { GROUP, plurals, VERSION } from "@slipway/crds";
import { parse } from "yaml";
import { root } from "../../../hack/lib/paths.ts";
import { waitFor } from "../../../hack/lib/wait.ts";

/** Applies the generated custom resource definitions to a test's apiserver, and waits until it serves them. */
export async function applyCrds(kube: KubeClient): Promise<void> {
  const folder = join(root, "crds/generated");
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".yaml"))) {
    const definition = parse(readFileSync(join(folder, file), "utf8"));
    await kube.apply(resources.customResourceDefinitions, definition, { fieldManager: "test" });
  }
  for (const [kind, plural] of Object.entries(plurals)) {
    const resource = customResource(GROUP, VERSION, plural, kind);
    await waitFor(`${plural} to be served`, 30_000, async () => {
      await kube.list(resource, { limit: 1 });
      return true;
    });
  }
}
