/** Brings a stack up, upgrades it or repairs it; hack/up.sh calls this once Node and the dependencies are there. */
import { join } from "node:path";
import type { Cluster } from "./cluster/cluster.ts";
import { useContext } from "./cluster/context.ts";
import { ensureEmbedded } from "./cluster/embedded.ts";
import { ensureKind } from "./cluster/kind.ts";
import { checkMachine } from "./cluster/preflight.ts";
import { logDir } from "./lib/paths.ts";
import { say, seconds, step } from "./lib/steps.ts";
import { allowListOf, installChart } from "./stack/chart.ts";
import { chooseCluster, inspectMachine } from "./stack/choice.ts";
import { writeStackFile } from "./stack/file.ts";
import { deliverImages } from "./stack/images.ts";
import { parseUpOptions, type UpOptions, usage } from "./stack/options.ts";
import { ensureOrganization } from "./stack/organization.ts";
import { summary } from "./stack/summary.ts";

const log = join(logDir, "up.log");

async function ensureCluster(options: UpOptions): Promise<Cluster> {
  const choice = chooseCluster(options, await inspectMachine());
  say(`cluster: ${choice.cluster}, since ${choice.why}`);
  if (choice.cluster === "context") {
    return useContext(options.context ?? "", options.registry ?? "", options.registryCa);
  }
  if (choice.cluster === "kind") return ensureKind(options);
  await checkMachine(options.apiPort, options.ingressPort);
  return ensureEmbedded(options);
}

async function main(): Promise<void> {
  const options = parseUpOptions(process.argv.slice(2), process.env);
  if (options.help) {
    console.log(usage);
    return;
  }
  const start = performance.now();
  const cluster = await ensureCluster(options);
  const images = await step("images of the stack", () => deliverImages(cluster), log);
  const install = async () =>
    installChart(
      cluster,
      {
        images: {
          operator: images.operator,
          apiServer: images.apiServer,
          ledger: images.ledger,
          valkey: images.valkey,
        },
        rateLimitScale: options.rateLimitScale,
        networks: cluster.networks,
        allowList: await allowListOf(cluster),
        ownIngress: cluster.kind !== "context",
      },
      log,
    );
  await step("chart", install, log);
  const organization = await step(
    "first organization",
    () => ensureOrganization(cluster, cluster.apiUrl),
    log,
  );
  const stack = await step("stack file", () => writeStackFile(cluster, images, organization), log);
  await step("last parts of the cluster", cluster.settle, log);
  say(summary(stack));
  say(`up in ${seconds(performance.now() - start)}`);
}

try {
  await main();
} catch (error) {
  console.error(`up: ${(error as Error).message}`);
  process.exitCode = 1;
}
