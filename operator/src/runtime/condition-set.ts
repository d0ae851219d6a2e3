import type { Condition } from "@slipway/kube";
import { type ConditionUpdate, findCondition, removeCondition, setCondition } from "./conditions.ts";

/** The conditions of one reconcile: read and set while it runs, written once at its end. */
export class ConditionSet {
  readonly #context: { now: Date; generation?: number };
  readonly #touched = new Set<string>();
  #conditions: Condition[];

  constructor(conditions: readonly Condition[], context: { now: Date; generation?: number }) {
    this.#conditions = [...conditions];
    this.#context = context;
  }

  /** Sets one; see `setCondition`. */
  set(update: ConditionUpdate): void {
    this.#touched.add(update.type);
    this.#conditions = setCondition(this.#conditions, update, this.#context);
  }

  remove(type: string): void {
    this.#touched.add(type);
    this.#conditions = removeCondition(this.#conditions, type);
  }

  get(type: string): Condition | undefined {
    return findCondition(this.#conditions, type);
  }

  isTrue(type: string): boolean {
    return this.get(type)?.status === "True";
  }

  /** Whether this reconcile has set or removed it. */
  wasSet(type: string): boolean {
    return this.#touched.has(type);
  }

  list(): Condition[] {
    return [...this.#conditions];
  }
}
