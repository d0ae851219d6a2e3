import { createLogger } from "@slipway/process";
import { connectLedger } from "@slipway/ledger";
import { ledgerDeliveries, DeliveryWorker } from "../delivery-queue.ts";

/** A replica that starts to process a delivery, reports that, and never finishes: for a test that kills it. */
const ledger = connectLedger({ url: process.argv[2] ?? "", applicationName: "test" });
const work = (): Promise<never> => {
  process.send?.(1);
  return new Promise(() => {});
};
const logger = createLogger("api-server", "error", { write: () => undefined });
new DeliveryWorker(ledgerDeliveries(ledger), work, logger, { leaseMs: 1_500, pollMs: 20 }).start();
