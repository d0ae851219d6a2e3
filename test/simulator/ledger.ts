/** The ledger of the model: it keeps what it acknowledged, even if the answer is lost. */

import type { ChargedRun, RecordedRun, RunLedger } from "../../operator/src/jobs/runs/ports.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export interface LedgerFaults {
  /** The commit is done and its answer lost; each is a probability of one call. */
  unanswered: number;
  /** Refused without a commit. */
  refused: number;
  /** The answer takes up to a minute. */
  slow: number;
}

const BILLING_FIELDS = [
  "organization_id",
  "project_id",
  "project_uid",
  "trigger",
  "status",
  "billed_minutes",
  "plan",
  "price_per_minute",
  "amount",
] as const;
const BILLING_TIMES = ["scheduled_at", "started_at", "finished_at", "billed_until"] as const;

/** The one organization of the model. */
const ORGANIZATION = "sim";

export class ModelLedger {
  readonly rows = new Map<string, ChargedRun>();
  /** Called for every row as it is first committed. */
  onRow: (row: ChargedRun) => void = () => {};
  /** Called for a row that exists with other values. */
  onDifference: (row: ChargedRun, present: ChargedRun) => void = () => {};
  readonly #timeline: Timeline;
  readonly #chance: Chance;
  readonly #faults: LedgerFaults;
  #downUntil = 0;

  constructor(timeline: Timeline, chance: Chance, faults: LedgerFaults) {
    this.#timeline = timeline;
    this.#chance = chance;
    this.#faults = faults;
  }

  /** Whether a run of the one organization of the model is recorded. */
  has(run: string): boolean {
    return this.rows.has(`${ORGANIZATION}/${run}`);
  }

  /** Answers no call for a while. */
  stop(ms: number): void {
    this.#downUntil = Math.max(this.#downUntil, this.#timeline.now + ms);
  }

  /** The ledger as one process reaches it. @param wake runs code of that process, if it is alive */
  connect(wake: (run: () => void) => void): RunLedger {
    return {
      record: (rows) => {
        const sent = rows.map((row) => ({ ...row }));
        return new Promise((resolve, reject) => {
          const chance = this.#chance;
          const delay = chance.happens(this.#faults.slow) ? chance.between(1_000, 60_000) : 0;
          const fate = chance.next();
          this.#timeline.after(chance.between(1, 30) + delay / 2, () => {
            const down = this.#timeline.now < this.#downUntil;
            let respond = () => reject(new Error("the ledger does not answer"));
            if (!down && fate >= this.#faults.refused) {
              const answer = this.#commit(sent);
              if (fate >= this.#faults.refused + this.#faults.unanswered) {
                respond = () => resolve(answer);
              }
            }
            this.#timeline.after(chance.between(1, 10) + delay / 2, () => wake(respond));
          });
        });
      },
    };
  }

  #commit(rows: readonly ChargedRun[]): RecordedRun[] {
    return rows.map((row) => {
      const { id, organization_id } = row;
      const key = `${organization_id}/${id}`;
      const present = this.rows.get(key);
      if (!present) {
        this.rows.set(key, row);
        this.onRow(row);
        return { id, organization_id, outcome: "recorded" as const, row };
      }
      const equal =
        BILLING_FIELDS.every((field) => row[field] === present[field]) &&
        BILLING_TIMES.every((field) => row[field].getTime() === present[field].getTime());
      if (!equal) {
        this.onDifference(row, present);
      }
      return {
        id,
        organization_id,
        outcome: equal ? ("already" as const) : ("differs" as const),
        row: present,
      };
    });
  }
}
