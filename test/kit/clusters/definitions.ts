/** The definitions of custom resources that tests install in an apiserver of their own. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { parse, parseAllDocuments } from "yaml";
import { binaryFile, ensureBinary } from "../../../hack/cluster/binaries.ts";
import { root } from "../../../hack/lib/paths.ts";
import { waitFor } from "../../../hack/lib/wait.ts";

/** The generated definitions of Slipway's custom resources. */
export async function slipwayDefinitions(): Promise<KubernetesObject[]> {
  const folder = join(root, "crds/generated");
  const files = (await readdir(folder)).filter((name) => name.endsWith(".yaml"));
  return Promise.all(
    files.map(async (name) => parse(await readFile(join(folder, name), "utf8")) as KubernetesObject),
  );
}

/** The definition of Traefik's Middlewares, from Traefik's own source. */
export async function middlewareDefinition(): Promise<KubernetesObject> {
  await ensureBinary("traefik");
  const documents = parseAllDocuments(await readFile(binaryFile("traefik", "definitions.yaml"), "utf8"));
  const definition = documents
    .map((document) => document.toJS() as KubernetesObject | null)
    .find((object) => object?.metadata?.name === "middlewares.traefik.io");
  if (!definition) {
    throw new Error("Traefik's source defines no Middlewares");
  }
  return definition;
}

type Definition = KubernetesObject & { status?: { conditions?: { type: string; status: string }[] } };

/** Applies definitions, and waits until all of them are served. */
export async function installDefinitions(
  client: KubeClient,
  definitions: readonly KubernetesObject[],
): Promise<void> {
  await Promise.all(
    definitions.map(async (definition) => {
      await client.apply(resources.customResourceDefinitions, definition, { fieldManager: "test" });
      const name = definition.metadata?.name ?? "";
      await waitFor(`${name} to be served`, 30_000, async () => {
        const { status } = await client.get<Definition>(resources.customResourceDefinitions, { name });
        return status?.conditions?.some(({ type, status }) => type === "Established" && status === "True");
      });
    }),
  );
}

/** Applies Slipway's definitions, and waits until they are served. */
export const applyCrds = async (client: KubeClient): Promise<void> =>
  installDefinitions(client, await slipwayDefinitions());
