import { parseTraceparent, type Span, type Tracing } from "@slipway/process/tracing";
import type { Store } from "../cache/store.ts";
import { type KubernetesObject, type ObjectRef, parseKey } from "../client/types.ts";
import type { StatusObject } from "../status/status.ts";
import type { Outcome } from "./outcome.ts";

/** How controllers trace. */
export interface ControllerTracing {
  tracing: Tracing;
  /** Annotation of an object: `traceparent` of what last wrote it, if that was traced. */
  traceparentAnnotation: string;
  /** What the names of span attributes begin with that OpenTelemetry has no name for. */
  telemetryPrefix: string;
}

/** The objects that a key's reconcile would act on now. */
export type TracedObjects = (ref: ObjectRef) => readonly KubernetesObject[];

/** The object that the key names, unless it is left alone for now. */
export function tracedIn<T extends KubernetesObject>(
  store: Store<T>,
  isLeftAlone: (object: T) => boolean = () => false,
): TracedObjects {
  return ({ namespace, name }) => {
    const object = store.get(namespace, name);
    return object && !isLeftAlone(object) ? [object] : [];
  };
}

/**
 * Continues traces that writes of objects began: the first reconcile after such a write is a span of its trace, and no later
 * one is. What a status already reports was handled by an earlier process.
 */
export class TracedChanges {
  readonly #tracing: Tracing;
  readonly #annotation: string;
  readonly #prefix: string;
  readonly #controller: string;
  readonly #objectsOf: TracedObjects;
  /** By key, of each existing object, by uid: the trace that was followed last. */
  readonly #followed = new Map<string, Map<string, string>>();

  constructor(tracing: ControllerTracing, controller: string, objectsOf: TracedObjects) {
    this.#tracing = tracing.tracing;
    this.#annotation = tracing.traceparentAnnotation;
    this.#prefix = tracing.telemetryPrefix;
    this.#controller = controller;
    this.#objectsOf = objectsOf;
  }

  /** Reconciles the key, within a span when there is a trace to continue. */
  async follow(key: string, reconcile: () => Promise<Outcome>): Promise<Outcome> {
    const span = this.#begin(key);
    if (!span) {
      return reconcile();
    }
    let outcome: Outcome | undefined;
    try {
      outcome = await this.#tracing.within(span, reconcile);
      return outcome;
    } finally {
      span.set({
        [`${this.#prefix}.outcome`]: outcome?.kind ?? "panic",
        [`${this.#prefix}.reason`]: outcome?.reason || undefined,
      });
      this.#tracing.end(span, { failed: isFailure(outcome) });
    }
  }

  #begin(key: string): Span | undefined {
    const known = this.#followed.get(key);
    const marked = this.#objectsOf(parseKey(key)).filter((object) => this.#traceOf(object) !== undefined);
    const change = marked.find(
      (object) => known?.get(uidOf(object)) !== this.#traceOf(object) && isNews(object),
    );
    // A deleted object is forgotten. A trace that was followed already is not followed again after another writer's change.
    const followed = new Map<string, string>();
    for (const object of marked) {
      const isDone = object === change || !isNews(object);
      const trace = isDone ? this.#traceOf(object) : known?.get(uidOf(object));
      if (trace !== undefined) {
        followed.set(uidOf(object), trace);
      }
    }
    if (followed.size > 0) {
      this.#followed.set(key, followed);
    } else {
      this.#followed.delete(key);
    }
    return change && this.#spanOf(change);
  }

  #spanOf({ kind, metadata }: KubernetesObject): Span | undefined {
    return this.#tracing.begin({
      name: this.#controller,
      kind: "internal",
      parent: metadata?.annotations?.[this.#annotation],
      attributes: {
        [`${this.#prefix}.controller`]: this.#controller,
        [`${this.#prefix}.object.kind`]: kind,
        "k8s.namespace.name": metadata?.namespace,
        [`${this.#prefix}.object.name`]: metadata?.name,
        [`${this.#prefix}.object.uid`]: metadata?.uid,
        [`${this.#prefix}.object.generation`]: metadata?.generation,
      },
    });
  }

  /** The sampled trace that the last write of an object began. */
  #traceOf({ metadata }: KubernetesObject): string | undefined {
    const text = metadata?.annotations?.[this.#annotation];
    return parseTraceparent(text)?.sampled ? text : undefined;
  }
}

const uidOf = ({ metadata }: KubernetesObject): string => metadata?.uid ?? "";

/** Whether its spec is newer than its status. A deletion is no write of it. */
function isNews(object: KubernetesObject): boolean {
  const { generation = 0, deletionTimestamp } = object.metadata ?? {};
  const { observedGeneration = 0 } = (object as StatusObject).status ?? {};
  return deletionTimestamp === undefined && generation > observedGeneration;
}

/** Waiting is no failure, and neither is a conflict that is tried again. */
const isFailure = (outcome: Outcome | undefined): boolean =>
  outcome === undefined ||
  outcome.kind === "terminal" ||
  outcome.kind === "panic" ||
  (outcome.kind === "retryable" && outcome.visible);
