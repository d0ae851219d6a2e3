/**
 * Attacks the running stack and prints the table: `node test/hostile/main.ts [--long] [--only NAME,...] [--builds off]`. Leaves it as
 * `.slipway/hostile/report.md` and `.json`. Exits 1 when something was wrong; with `--no-latency` not for latencies.
 */
import { parseArgs } from "node:util";
import { measureStack } from "./stack.ts";

const { values } = parseArgs({
  options: {
    long: { type: "boolean", default: false },
    only: { type: "string" },
    builds: { type: "string" },
    latency: { type: "boolean", default: true },
  },
  allowNegative: true,
});
if (values.long) {
  process.env.SLIPWAY_TEST_LONG = "1";
}
const { faults, slow } = await measureStack({
  names: values.only?.split(","),
  builds: values.builds !== "off",
});
process.exit(faults.length + (values.latency ? slow.length : 0) === 0 ? 0 : 1);
