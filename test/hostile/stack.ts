/** A run on the stack of `hack/up.sh`, with its report on disk. */
import { writeReport } from "../../hack/testing/reports.ts";
import { testedCommit } from "../../hack/testing/summary.ts";
import { cluster } from "../e2e/support/cluster.ts";
import { attackNamed, attacks } from "./attacks/index.ts";
import { measuredFirst } from "./priority.ts";
import { allFaults, allSlowness, markdown } from "./report.ts";
import { type RunOptions, run } from "./run.ts";

/** The API's multiplier of rate limits, as its Deployment has it. */
async function rateLimitScale(): Promise<number> {
  const where = { namespace: "slipway-system", name: "slipway-api-server" };
  const { spec } = await cluster.apps.readNamespacedDeployment(where);
  const variable = spec?.template.spec?.containers[0]?.env?.find(
    ({ name }) => name === "SLIPWAY_RATE_LIMIT_SCALE",
  );
  return Number(variable?.value ?? 1);
}

/**
 * Runs the short form, which is some attacks concurrently, or the whole with `isLong`, or the attacks that are named; writes
 * `.slipway/logs/hostile/report.md` and `report.json`.
 * @returns all that was wrong, and where it was slow
 */
export async function measureStack({
  names,
  builds,
  isLong,
}: {
  names?: readonly string[];
  builds: boolean;
  isLong: boolean;
}): Promise<{ faults: string[]; slow: string[] }> {
  const chosen = names?.map(attackNamed) ?? attacks.filter(({ isShort }) => isLong || isShort === true);
  const options: RunOptions = {
    commit: await testedCommit(),
    rateLimitScale: await rateLimitScale(),
    attacks: chosen,
    // Those that are named are measured one by one.
    eachAlone: isLong || names !== undefined,
    quietSeconds: isLong ? 30 : 10,
    restSeconds: 2,
    builds: !builds ? "never" : isLong ? "each" : "all",
    log: (line) => console.log(`hostile: ${line}`),
  };
  const results = await measuredFirst(() => run(options));
  await writeReport("hostile", results, markdown(results));
  return { faults: allFaults(results), slow: allSlowness(results) };
}
