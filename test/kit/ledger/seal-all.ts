import { type BillingSeal, type Ledger, sealBilling } from "@slipway/ledger";

/** Seals all that is recorded, as it would be an hour later. @returns the seals that it made */
export async function sealAll(ledger: Ledger): Promise<BillingSeal[]> {
  const seals: BillingSeal[] = [];
  for (let isMore = true; isMore; ) {
    const result = await sealBilling(ledger, { lagMs: 0 });
    seals.push(...(result.seal ? [result.seal] : []));
    isMore = result.isMore;
  }
  return seals;
}
