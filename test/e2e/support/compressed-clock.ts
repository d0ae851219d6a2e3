import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";
import { CLOCK_VARIABLE, type ClockSchedule, ledgerClock } from "../../kit/processes/compressed-clock.ts";
import { cluster } from "./cluster.ts";
import { systemNamespace } from "./operator.ts";
import { mountInOperator, operatorVariable, setOperator } from "./operator-settings.ts";

const CONFIG_MAP = "slipway-test-clock";
const FOLDER = "/slipway-test-clock";
const FILE = "clock.mts";

/**
 * Gives the stack's operators a clock that is behind and catches up by steps, and resolves once one leads by it. The program is mounted beside
 * theirs, which has no place for it; the ledger's owner has it answer the operators' comparisons by the same clock.
 * @param settings more of the operators' variables
 * @returns gives everything back
 */
export async function setOperatorClock(
  schedule: ClockSchedule,
  { ledger, role, settings }: { ledger: Ledger; role: string; settings: Readonly<Record<string, string>> },
): Promise<() => Promise<void>> {
  const undo: (() => Promise<unknown>)[] = [];
  const giveBack = async () => {
    for (const one of undo.toReversed()) {
      await one();
    }
    undo.length = 0;
  };
  const { set, reset } = ledgerClock(schedule, role);
  const execute = async (statements: readonly string[]) => {
    for (const statement of statements) {
      await sql.raw(statement).execute(ledger);
    }
  };
  try {
    const file = join(import.meta.dirname, "../../kit/processes/compressed-clock.ts");
    const where = { namespace: systemNamespace, name: CONFIG_MAP };
    const data = { [FILE]: await readFile(file, "utf8") };
    const body = { metadata: where, data };
    undo.push(() => cluster.core.deleteNamespacedConfigMap(where));
    await cluster.core.createNamespacedConfigMap({ namespace: systemNamespace, body });
    undo.push(await mountInOperator(CONFIG_MAP, FOLDER));
    const options = await operatorVariable("NODE_OPTIONS");
    let unset = () => Promise.resolve();
    undo.push(() => unset());
    // Operators end whose clock is not the ledger's: it has this clock no sooner than those that live by it start, and no longer.
    undo.push(() => execute(reset));
    await execute(set);
    unset = await setOperator({
      ...settings,
      [CLOCK_VARIABLE]: JSON.stringify(schedule),
      NODE_OPTIONS: [options, `--import=${FOLDER}/${FILE}`].filter(Boolean).join(" "),
    });
    return giveBack;
  } catch (error) {
    await giveBack();
    throw error;
  }
}
