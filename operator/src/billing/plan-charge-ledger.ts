/** What metering needs of the ledger for charges of plans. */

import type { BillableHistory, PriceList, RecordedPlanCharge } from "@slipway/crds";
import type {
  AdjustedProject,
  MeteredHistory,
  MeteredProject,
  MeteredWindow,
  RecordedPlanCharges,
} from "@slipway/ledger";

/** The ledger's charges of plans. Each call may throw when the ledger is unavailable. */
export interface PlanChargeLedger {
  toMeter(): Promise<readonly MeteredProject[]>;
  /** All that is recorded of some projects. */
  histories(projectUids: readonly string[]): Promise<readonly BillableHistory[]>;
  /** What came since their checkpoints, of each so many changes at most. */
  recent(projectUids: readonly string[], most: number): Promise<readonly MeteredHistory[]>;
  prices(): Promise<readonly PriceList[]>;
  /** Records prices that are in force from now on, where they are others than the last ones. */
  recordPrices(list: PriceList): Promise<boolean>;
  record(windows: readonly MeteredWindow[]): Promise<RecordedPlanCharges>;
  /** All recorded terms and credits of a project, and its hours that ended since an instant, oldest first. */
  recorded(projectUid: string, hoursSince: Date): Promise<readonly RecordedPlanCharge[]>;
  /** @returns how many are recorded; undefined where they are to be computed again */
  adjust(project: AdjustedProject): Promise<number | undefined>;
}

export type PlanChargeOutcome = "recorded" | "adjusted" | "differs" | "refused";
