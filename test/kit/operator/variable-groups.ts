import { createHash } from "node:crypto";
import {
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import type { VariableGroup } from "@slipway/crds";
import { variableGroupResource } from "../../../operator/src/resources.ts";

/** Creates a variable group, or gives it other variables, as `/v1` does: in another Secret. */
export async function putGroup(
  client: KubeClient,
  { namespace, name }: { namespace: string; name: string },
  stringData: Record<string, string>,
): Promise<void> {
  const hash = createHash("sha256").update(JSON.stringify(stringData)).digest("hex").slice(0, 12);
  const secret = `${name}-values-${hash}`;
  const object = { metadata: { namespace, name: secret }, immutable: true, stringData } as KubernetesObject;
  await client.create(resources.secrets, object).catch((error: unknown) => {
    if (!isAlreadyExists(error)) {
      throw error;
    }
  });
  const spec = { displayName: name, secretRef: { name: secret } };
  try {
    await client.patch(variableGroupResource, { namespace, name }, { spec });
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
    await client.create<VariableGroup>(variableGroupResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "VariableGroup",
      metadata: { namespace, name },
      spec,
    });
  }
}
