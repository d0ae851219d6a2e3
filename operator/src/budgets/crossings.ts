/** Records which thresholds of budgets are reached. */

import type { Clock, Logger } from "@slipway/process";
import { Attempts, eachPage } from "../organization-rounds.ts";
import type { BudgetLedger } from "./ports.ts";

export interface CrossingsOptions {
  ledger: Pick<BudgetLedger, "list" | "unrecorded" | "record">;
  /** One that throws while it may not be acted on. */
  trustedClock: Clock;
  clock: Clock;
  log: Logger;
  onRecorded: (count: number) => void;
  onFailure: () => void;
}

/**
 * One round. An organization that cannot be recorded, or a page that cannot be compared, keeps no other back.
 * @returns whether all were compared and recorded
 * @throws what the ledger throws while it is unavailable
 */
export async function recordCrossings(
  { ledger, trustedClock, clock, log, onRecorded, onFailure }: CrossingsOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const attempts = new Attempts((err, of) => {
    onFailure();
    log.warn({ err, ...of }, "budgets could not be compared with charges");
  });
  await eachPage(
    (page) => ledger.list(page),
    async (ids) => {
      const compare = () => ledger.unrecorded(trustedClock.now(), ids);
      const due = (await attempts.run(compare, { first: ids[0], last: ids.at(-1) })) ?? [];
      for (const organization of due) {
        if (signal.aborted) {
          return;
        }
        const record = () => ledger.record(trustedClock.now(), organization);
        onRecorded((await attempts.run(record, { organization })) ?? 0);
      }
    },
    { clock, signal },
  );
  return attempts.areComplete && !signal.aborted;
}
