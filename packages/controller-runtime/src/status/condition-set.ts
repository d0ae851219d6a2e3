import type { Condition } from "../client/types.ts";
import {
  type ConditionCatalog,
  type ConditionUpdate,
  findCondition,
  removeCondition,
  setCondition,
} from "./conditions.ts";

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
