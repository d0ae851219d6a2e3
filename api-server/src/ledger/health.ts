import type { Ledger } from "@slipway/ledger";

/** Whether the ledger answers within `ms`. Never rejects. */
export async function ledgerAnswers(ledger: Ledger, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const asked = ledger
    .selectNoFrom((eb) => eb.val(1).as("one"))
    .execute()
    .then(
      () => true,
      () => false,
    );
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}
