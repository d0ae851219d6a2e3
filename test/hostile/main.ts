/**
 * Attacks the running stack and prints the table: `node test/hostile/main.ts [--long] [--only NAME,...] [--builds off]`. Leaves it as
 * `.slipway/logs/hostile/report.md` and `.json`. Exits 1 when something was wrong; with `--no-latency` not for latencies. With
 * `--rate-limit-scale N` the API has that multiplier of its rate limits meanwhile: what those of users reject, those of tests accept.
 * `--no-restore` leaves it that multiplier, on a stack that is removed next.
 */
import { parseArgs } from "node:util";
import { setApiServer } from "../e2e/support/operator-settings.ts";
import { isLong } from "../kit/long.ts";
import { measureStack } from "./stack.ts";

const { values } = parseArgs({
  options: {
    long: { type: "boolean", default: false },
    only: { type: "string" },
    builds: { type: "string" },
    latency: { type: "boolean", default: true },
    "rate-limit-scale": { type: "string" },
    restore: { type: "boolean", default: true },
  },
  allowNegative: true,
});
// Attackers are processes of their own.
if (values.long) {
  process.env.SLIPWAY_TEST_LONG = "1";
}
const scale = values["rate-limit-scale"];
const restore = scale === undefined ? undefined : await setApiServer({ SLIPWAY_RATE_LIMIT_SCALE: scale });
const { faults, slow } = await measureStack({
  names: values.only?.split(","),
  builds: values.builds !== "off",
  isLong: values.long || isLong,
}).finally(values.restore ? restore : undefined);
process.exit(faults.length + (values.latency ? slow.length : 0) === 0 ? 0 : 1);
