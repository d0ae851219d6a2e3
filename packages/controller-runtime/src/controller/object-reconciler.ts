import type { Clock } from "@slipway/process";
import { equalJson } from "../apply/json.ts";
import type { Store } from "../cache/store.ts";
import type { KubeClient } from "../client/client.ts";
import { isNotFound } from "../client/errors.ts";
import type { ObjectRef, Resource } from "../client/types.ts";
import { type ConditionCatalog, ConditionSet } from "../status/conditions.ts";
import type { EventRecorder } from "../status/events.ts";
import { type ObjectStatus, type StatusObject, writeStatus } from "../status/status.ts";
import type { ReconcileContext, Reconciler } from "./controller.ts";
import { type Outcome, outcomeOfError, outcomeOfResult, type Result } from "./outcome.ts";

/** What a reconciler of one kind is given for one object. */
export interface ObjectContext<T extends StatusObject, Catalog extends ConditionCatalog = ConditionCatalog>
  extends ReconcileContext {
  /** Set here; written once, at the end. */
  readonly conditions: ConditionSet<Catalog>;
  /** A copy of the object's status to change; conditions and observedGeneration are filled in at the end. */
  readonly status: NonNullable<T["status"]>;
  /** Records an event about the object; those of condition changes of `Ready` come by themselves. */
  event(type: "Normal" | "Warning", reason: string, note: string): void;
}

export interface ObjectReconcilerOptions<
  T extends StatusObject,
  Catalog extends ConditionCatalog = ConditionCatalog,
> {
  client: KubeClient;
  resource: Resource;
  store: Store<T>;
  recorder: EventRecorder;
  clock: Clock;
  fieldManager: string;
  /** The work itself. Throw to end early; what was set in conditions and status until then is written. */
  reconcile(object: T, context: ObjectContext<T, Catalog>): Promise<Result | undefined>;
  /** Called when the object is not in the store (any more). */
  gone?(ref: ObjectRef, context: ReconcileContext): Promise<void>;
  /** The last word on the status, from conditions and outcome: derive phase and the like here. */
  summarize?(
    object: T,
    status: NonNullable<T["status"]>,
    conditions: ConditionSet<Catalog>,
    outcome: Outcome,
  ): void;
}

/**
 * Makes a reconciler that writes conditions and status once, at the end, however the work ended, and only when they
 * changed. An error becomes `Ready=False` with the error's reason and message (and the condition that the error names);
 * a change of `Ready` becomes an event with the same reason.
 */
export function objectReconciler<T extends StatusObject, Catalog extends ConditionCatalog = ConditionCatalog>(
  options: ObjectReconcilerOptions<T, Catalog>,
): Reconciler {
  return async (ref, base) => {
    const object = options.store.get(ref.namespace, ref.name);
    if (!object) {
      await options.gone?.(ref, base);
      return undefined;
    }
    const { outcome, error, context } = await attempt(object, base, options);
    await finish(object, context, outcome, options);
    if (error !== undefined) {
      throw error;
    }
    return outcome.requeue.type === "after" ? { requeueAfterMs: outcome.requeue.ms } : undefined;
  };
}

async function attempt<T extends StatusObject>(
  object: T,
  base: ReconcileContext,
  options: ObjectReconcilerOptions<T>,
): Promise<{ outcome: Outcome; error?: unknown; context: ObjectContext<T> }> {
  const status = structuredClone(object.status ?? {}) as NonNullable<T["status"]>;
  const generation = object.metadata?.generation;
  const context: ObjectContext<T> = {
    ...base,
    status,
    conditions: new ConditionSet(status.conditions ?? [], { now: options.clock.now(), generation }),
    event: (type, reason, note) => options.recorder.event(object, options.resource, { type, reason, note }),
  };
  try {
    return { outcome: outcomeOfResult(await options.reconcile(object, context)), context };
  } catch (error) {
    return { outcome: outcomeOfError(error), error: error ?? new Error("threw nothing"), context };
  }
}

async function finish<T extends StatusObject>(
  object: T,
  context: ObjectContext<T>,
  outcome: Outcome,
  options: ObjectReconcilerOptions<T>,
): Promise<void> {
  const { conditions } = context;
  // A conflict or an unreachable apiserver says nothing of the object; the next try will.
  if (!outcome.visible) {
    return;
  }
  applyOutcome(conditions, outcome);
  const status = context.status as ObjectStatus;
  status.observedGeneration = object.metadata?.generation;
  options.summarize?.(object, context.status, conditions, outcome);
  status.conditions = conditions.list();
  try {
    const wrote = await writeStatus(latest(object, options.store), context.status, {
      client: options.client,
      resource: options.resource,
      store: options.store,
      fieldManager: options.fieldManager,
      signal: context.signal,
    });
    if (wrote) {
      announce(object, conditions, outcome, options);
    }
  } catch (error) {
    // Its last finalizer was removed: the object no longer exists.
    if (!isNotFound(error)) {
      throw error;
    }
  }
}

/**
 * The object as this reconcile has itself written it since (a finalizer), so that the status write is no conflict; the
 * one that was read when anybody changed spec or status, so that it is one.
 */
function latest<T extends StatusObject>(object: T, store: Store<T>): T {
  const { namespace, name = "", uid, generation } = object.metadata ?? {};
  const now = store.get(namespace, name);
  const same = now?.metadata?.uid === uid && now?.metadata?.generation === generation;
  return now && same && equalJson(now.status, object.status) ? now : object;
}

/** The one place where an outcome becomes conditions. */
function applyOutcome(conditions: ConditionSet, outcome: Outcome): void {
  if (outcome.kind === "success") {
    if (!conditions.wasSet("Ready")) {
      conditions.set({ type: "Ready", status: "True", reason: "Ready" });
    }
    return;
  }
  const { reason, message } = outcome;
  for (const type of new Set(["Ready", outcome.condition ?? "Ready"])) {
    conditions.set({ type, status: "False", reason, message });
  }
}

/** An event for each change of `Ready`, with its reason; none for a new object that is not ready yet, as nothing is at first. */
function announce<T extends StatusObject>(
  object: T,
  conditions: ConditionSet,
  outcome: Outcome,
  options: ObjectReconcilerOptions<T>,
): void {
  const before = object.status?.conditions?.find((condition) => condition.type === "Ready");
  const after = conditions.get("Ready");
  if (!after || (before?.status === after.status && before.reason === after.reason)) {
    return;
  }
  if (before === undefined && after.status === "False" && outcome.kind === "success") {
    return;
  }
  const note = after.message === "" ? `Ready is ${after.status}` : after.message;
  const type = after.status === "True" ? "Normal" : outcome.eventType;
  options.recorder.event(object, options.resource, { type, reason: after.reason, note });
}
