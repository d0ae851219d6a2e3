import type { KubeClient } from "@slipway/controller-runtime";
import { AuditTimeoutError, type Ledger } from "@slipway/ledger";
import { expect, test } from "vitest";
import { auditCluster } from "./billing.ts";

// Shows: docs/billing-audit.md#the-command: The admin server ends an audit after 150 seconds
test("objects of the cluster are read in what is left of the command's time", async () => {
  let read = 0;
  const kube = {
    getOrUndefined: async () => {
      read += 1;
      return undefined;
    },
  } as unknown as KubeClient;
  const context = { kube: async () => kube, ledger: {} as Ledger, progress: undefined, timeoutMs: 1_000 };
  const objects = auditCluster(
    context,
    { organization: "acme", began: performance.now() - 1_001 },
    () => undefined,
  );
  await expect(objects).rejects.toThrow(AuditTimeoutError);
  expect(read).toBe(0);
});
