import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { parse } from "yaml";
import type { Cluster } from "../cluster/cluster.ts";
import { type DatabaseImageSource, type DatabaseValues, databaseImageValues } from "../images/databases.ts";
import { writeFileAtomic } from "../lib/files.ts";
import { stateDir } from "../lib/paths.ts";
import { say, seconds } from "../lib/steps.ts";
import { waitFor } from "../lib/wait.ts";
import { systemNamespace } from "./chart.ts";
import { chosenImages, type DatabaseChoice, imageKey } from "./database-choice.ts";
import { deliver } from "./images.ts";

/** File of the authority that signs the databases' certificates. */
const authorityFile = join(stateDir, "database-ca.crt");

/**
 * Which images the stack is to have, and which it has been offering until now.
 * @param images all that there are
 */
export async function planDatabases(
  cluster: Cluster,
  choice: DatabaseChoice,
  images: readonly DatabaseImageSource[],
): Promise<{ wanted: DatabaseImageSource[]; first: boolean }> {
  const config = await configMapData(cluster, "slipway-database-images");
  const offered = config === undefined ? {} : (parse(config["images.yaml"] ?? "") as DatabaseValues | null);
  const keys = Object.entries(offered ?? {}).flatMap(([engine, versions]) =>
    Object.keys(versions).map((version) => imageKey({ engine, version })),
  );
  return { wanted: chosenImages(choice, images, keys), first: keys.length === 0 };
}

/** The chart's values for these images, built or not, where the references of images do not depend on a registry. */
export async function expectedDatabases(images: DatabaseImageSource[]): Promise<DatabaseValues> {
  const all = images.map(async (source) => ({ source, reference: await source.reference() }));
  return databaseImageValues(await Promise.all(all));
}

/** Builds these images, or finds them built, and delivers them to the cluster. Returns the chart's values. */
export async function deliverDatabases(
  cluster: Cluster,
  images: DatabaseImageSource[],
): Promise<DatabaseValues> {
  const delivered: Parameters<typeof databaseImageValues>[0] = [];
  for (const [index, source] of images.entries()) {
    const name = `${source.engine} ${source.version}`;
    const start = performance.now();
    const built = await source.build();
    const reference = await deliver(cluster, { name, deliver: "import" }, built);
    delivered.push({ source, reference });
    const did = built.built ? `added to the image cache in ${seconds(performance.now() - start)}` : "there";
    say(`${name} ${did} (${index + 1} of ${images.length})`);
  }
  return databaseImageValues(delivered);
}

/**
 * Writes the certificate of the databases' authority where the stack file names it. The operator publishes it when it
 * starts; undefined, with a message, when it does not.
 */
export async function writeDatabaseAuthority(cluster: Cluster): Promise<string | undefined> {
  try {
    const certificate = await waitFor("the databases' authority", 30_000, async () => {
      const text = (await configMapData(cluster, "slipway-database-ca"))?.["ca.crt"];
      return text && new X509Certificate(text).ca ? text : undefined;
    });
    await writeFileAtomic(authorityFile, certificate, 0o644);
    return authorityFile;
  } catch (error) {
    say(`SLIPWAY_DATABASE_CA is left out of the stack file: ${(error as Error).message}`);
    return undefined;
  }
}

/** Data of a ConfigMap of the platform's namespace; undefined when there is none. */
async function configMapData(cluster: Cluster, name: string): Promise<Record<string, string> | undefined> {
  const args = ["-n", systemNamespace, "get", "configmap", name, "--ignore-not-found", "-o", "json"];
  const text = await cluster.kubectl(args);
  return text.trim() === ""
    ? undefined
    : ((JSON.parse(text) as { data?: Record<string, string> }).data ?? {});
}
