import type { Condition } from "../client/types.ts";

/** What conditions of a kind may say: their types, and their reasons. CamelCase, each from a fixed set. */
export interface ConditionCatalog {
  type: string;
  reason: string;
}

/** What a condition should say. */
export interface ConditionUpdate<Catalog extends ConditionCatalog = ConditionCatalog> {
  type: Catalog["type"];
  status: Condition["status"];
  reason: Catalog["reason"];
  /** For people. Contains nothing that changes without a cause (times, counters, names of pods): each change is a write. */
  message?: string;
}

/** The longest message kept. */
const MAX_MESSAGE = 1024;

/**
 * The one setter of conditions. Returns a new list with the condition set; its `lastTransitionTime` moves only when its
 * status changes. The order is stable: `Ready` first, then by type.
 */
export function setCondition(
  conditions: readonly Condition[],
  update: ConditionUpdate,
  context: { now: Date; generation?: number },
): Condition[] {
  const present = conditions.find((condition) => condition.type === update.type);
  const unchanged = present?.status === update.status;
  const condition: Condition = {
    type: update.type,
    status: update.status,
    reason: update.reason,
    message: bounded(update.message ?? ""),
    lastTransitionTime: unchanged ? present.lastTransitionTime : timestamp(context.now),
    ...(context.generation === undefined ? {} : { observedGeneration: context.generation }),
  };
  return [...conditions.filter((other) => other.type !== update.type), condition].sort(byType);
}

/** The list without a condition. */
export function removeCondition(conditions: readonly Condition[], type: string): Condition[] {
  return conditions.filter((condition) => condition.type !== type);
}

/** One condition of a list. */
export function findCondition(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** Whether a condition is present and true. */
export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === "True";
}

/** RFC 3339 in whole seconds, as Kubernetes writes `metav1.Time`. */
export function timestamp(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}

function byType(a: Condition, b: Condition): number {
  if (a.type === b.type) {
    return 0;
  }
  if (a.type === "Ready") {
    return -1;
  }
  if (b.type === "Ready") {
    return 1;
  }
  return a.type < b.type ? -1 : 1;
}

function bounded(message: string): string {
  return message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 1)}…`;
}

/** A condition as it is found; one that an earlier version wrote may have a reason that is none of today's. */
type ConditionOf<Catalog extends ConditionCatalog> = Condition & Catalog;

/** The conditions of one reconcile: read and set while it runs, written once at its end. */
export class ConditionSet<Catalog extends ConditionCatalog = ConditionCatalog> {
  readonly #context: { now: Date; generation?: number };
  readonly #touched = new Set<string>();
  #conditions: Condition[];

  constructor(conditions: readonly Condition[], context: { now: Date; generation?: number }) {
    this.#conditions = [...conditions];
    this.#context = context;
  }

  /** Sets one; see `setCondition`. */
  set(update: ConditionUpdate<Catalog>): void {
    this.#touched.add(update.type);
    this.#conditions = setCondition(this.#conditions, update, this.#context);
  }

  remove(type: Catalog["type"]): void {
    this.#touched.add(type);
    this.#conditions = removeCondition(this.#conditions, type);
  }

  get(type: Catalog["type"]): ConditionOf<Catalog> | undefined {
    return findCondition(this.#conditions, type) as ConditionOf<Catalog> | undefined;
  }

  isTrue(type: Catalog["type"]): boolean {
    return this.get(type)?.status === "True";
  }

  /** Whether this reconcile has set or removed it. */
  wasSet(type: Catalog["type"]): boolean {
    return this.#touched.has(type);
  }

  list(): Condition[] {
    return [...this.#conditions];
  }
}
