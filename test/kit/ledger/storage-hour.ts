import { runAmount } from "@slipway/crds";
import type { StorageHour } from "@slipway/ledger";

/** An hour of storage whose index counts from 1970, and whose amount follows from the rest. */
export function storageHour(
  facts: Partial<StorageHour> & { organization_id: string; from: Date },
): StorageHour {
  const { gb = 10, price_per_gb_hour = "0.012" } = facts;
  return {
    project_id: "nightly",
    project_uid: "11111111-2222-3333-4444-555555555555",
    hour_index: Math.floor(facts.from.getTime() / 3_600_000),
    gb,
    price_per_gb_hour,
    amount: runAmount(price_per_gb_hour, gb),
    ...facts,
  };
}
