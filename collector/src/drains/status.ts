import { type ConditionUpdate, setCondition } from "@slipway/controller-runtime";
import type { LogDrain, LogDrainConditionCatalog, LogDrainStatus } from "@slipway/crds";
import type { Drain } from "./drain.ts";
import { DeliveryError } from "./receiver.ts";

/** What a drain's status says now: without a change of what is known the same as before. Pure. */
export function statusOf(
  drain: Pick<Drain, "resource" | "outcome" | "readiness" | "refused" | "skipped">,
  lagMs: number,
  now: Date,
): LogDrainStatus {
  const { metadata, status = {} }: LogDrain = drain.resource;
  const generation = metadata.generation;
  // Until its credentials were tried nothing is known of a change.
  const observed = drain.readiness === undefined ? status.observedGeneration : generation;
  const updates: ConditionUpdate<LogDrainConditionCatalog>[] = [];
  if (drain.readiness !== undefined) {
    const isReady = drain.readiness === "configured";
    updates.push({
      type: "Ready",
      status: isReady ? "True" : "False",
      reason: drain.readiness instanceof DeliveryError ? drain.readiness.reason : "Configured",
      message: drain.readiness instanceof DeliveryError ? drain.readiness.message : "",
    });
  }
  if (drain.outcome !== undefined) {
    const failure = drain.outcome instanceof DeliveryError ? drain.outcome : undefined;
    updates.push({
      type: "Delivering",
      status: failure === undefined ? "True" : "False",
      reason: failure?.reason ?? "Delivered",
      message: failure?.message ?? "",
    });
  }
  const conditions = updates.reduce(
    (all, update) => setCondition(all, update, { now, ...(generation === undefined ? {} : { generation }) }),
    (status.conditions ?? []) as ReturnType<typeof setCondition>,
  );
  return {
    ...(observed === undefined ? {} : { observedGeneration: observed }),
    ...(conditions.length === 0
      ? {}
      : { conditions: conditions as NonNullable<LogDrainStatus["conditions"]> }),
    lagSeconds: Math.floor(lagMs / 60_000) * 60,
    ...(drain.refused === 0 ? {} : { refusedLines: drain.refused }),
    ...(drain.skipped === 0 ? {} : { skippedLines: drain.skipped }),
  };
}
