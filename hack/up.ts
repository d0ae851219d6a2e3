/** Brings a stack up, upgrades it or repairs it; hack/up.sh calls this once Node and the dependencies are installed. */
import { join } from "node:path";
import type { Builds } from "./cluster/builds/index.ts";
import type { Cluster } from "./cluster/cluster.ts";
import { useContext } from "./cluster/context.ts";
import { ensureEmbedded } from "./cluster/embedded.ts";
import { ensureKind } from "./cluster/kind.ts";
import { checkMachine } from "./cluster/preflight.ts";
import { takeDownAbandoned } from "./cluster/teardown.ts";
import { type ImageSources, ownImages } from "./images/sources.ts";
import { sideBySide } from "./lib/concurrently.ts";
import { logDir } from "./lib/paths.ts";
import { say, seconds, step } from "./lib/steps.ts";
import { type Bundle, openBundle } from "./releases/bundle/open.ts";
import { buildsOfChart, deliverBuildImages, writeBuildSecrets } from "./stack/builds.ts";
import { allowListOf, installChart, ownChart, readValues } from "./stack/chart.ts";
import { chooseCluster, inspectMachine } from "./stack/choice.ts";
import { chosenImages } from "./stack/database-choice.ts";
import { deliverDatabases, expectedDatabases, planDatabases } from "./stack/databases.ts";
import { writeStackFile } from "./stack/file.ts";
import { deliverImages } from "./stack/images.ts";
import { deliverMemberImage, memberImage } from "./stack/ledger.ts";
import { parseUpOptions, type UpOptions, usage } from "./stack/options.ts";
import { ensureOrganization } from "./stack/organization.ts";
import { firstSteps, summary } from "./stack/summary.ts";

const log = join(logDir, "up.log");

async function ensureCluster(options: UpOptions): Promise<Cluster> {
  const choice = chooseCluster(options, await inspectMachine());
  say(`cluster: ${choice.cluster}, since ${choice.why}`);
  if (choice.cluster === "context") {
    return useContext(options.context ?? "", options.registry ?? "", options.registryCa);
  }
  if (choice.cluster === "kind") {
    return ensureKind({ ...options, engine: choice.engine ?? "docker" });
  }
  await takeDownAbandoned();
  await checkMachine(options.apiPort, options.ingressPort, options.builds);
  return ensureEmbedded(options);
}

/** Git server, registry and images of builds; answers how the Git server is reached. */
async function ensureBuilds(
  cluster: Cluster,
  builds: NonNullable<Cluster["builds"]>,
  sources: ImageSources,
): Promise<Builds["git"]> {
  const { registry, git } = await builds.ensure();
  await deliverBuildImages(cluster, registry, sources);
  return git;
}

/** Images and chart of the release that is named, or of these sources. */
async function installable({ bundle, bundleKey }: UpOptions): Promise<Pick<Bundle, "chart" | "images">> {
  return bundle === undefined
    ? { chart: ownChart, images: ownImages() }
    : step("bundle", () => openBundle(bundle, bundleKey), log);
}

async function main(): Promise<void> {
  const options = parseUpOptions(process.argv.slice(2), process.env);
  if (options.help) {
    console.log(usage);
    return;
  }
  const start = performance.now();
  const { chart, images: sources } = await installable(options);
  // A choice that cannot be met is refused before anything is changed.
  chosenImages(options.databases, sources.databases);
  const more = await readValues(options.values);
  const ofMembers = memberImage(more, sources.databases);
  const cluster = await ensureCluster(options);
  const images = await step("images of the stack", () => deliverImages(cluster, sources.stack), log);
  const ledger = await deliverMemberImage(cluster, ofMembers);
  const databases = await planDatabases(cluster, options.databases, sources.databases);
  const deliverAll = () =>
    step("images of databases", () => deliverDatabases(cluster, databases.wanted), log);
  // The first time, the platform does not wait for them: their references are known before they are built. A stack that
  // has databases gets new images before the platform hears of them.
  const late = databases.first && cluster.importImage !== undefined;
  const databaseValues = late ? await expectedDatabases(databases.wanted) : await deliverAll();
  const builds = options.builds ? cluster.builds : undefined;
  const install = async () =>
    installChart(
      cluster,
      chart,
      {
        images: {
          operator: images.operator,
          apiServer: images.apiServer,
          ledger: images.ledger,
          ...ledger,
          valkey: images.valkey,
          analytics: images.analytics,
        },
        rateLimitScale: options.rateLimitScale,
        networks: cluster.networks,
        builds: builds && (await buildsOfChart(builds.registry, builds.git, cluster.apiUrl, sources)),
        collector: cluster.collector,
        allowList: await allowListOf(cluster),
        // kind's kubelet signs its certificate itself.
        kubeletsVerified: cluster.kind !== "kind",
        ownIngress: cluster.kind !== "context",
        databases: { images: databaseValues, host: cluster.databaseHost },
      },
      more,
      log,
    );
  if (builds) {
    await step("secrets of builds", () => writeBuildSecrets(cluster, builds.registry), log);
  }
  // The platform mostly waits for its pods; what only builds and databases need is made meanwhile.
  const git = builds
    ? step("builds", () => ensureBuilds(cluster, builds, sources), log)
    : Promise.resolve(undefined);
  const [stack] = await sideBySide(
    async () => {
      await step("chart", install, log);
      const create = () => ensureOrganization(cluster, cluster.apiUrl);
      const organization = await step("first organization", create, log);
      const write = (server: Builds["git"] | undefined) =>
        writeStackFile(cluster, images, organization, server);
      if (builds || late) {
        await step("stack file of applications", () => write(undefined), log);
        say(firstSteps());
        say(
          `the first application can be created after ${seconds(performance.now() - start)}; the rest follows`,
        );
      }
      const server = await git;
      return step("stack file", () => write(server), log);
    },
    async () => {
      await git;
      if (late) {
        await deliverAll();
      }
    },
  );
  await step("last parts of the cluster", cluster.waitForSlowParts, log);
  say(summary(stack));
  say(`up in ${seconds(performance.now() - start)}`);
}

try {
  await main();
} catch (error) {
  console.error(`up: ${(error as Error).message}`);
  process.exitCode = 1;
}
