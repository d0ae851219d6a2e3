import { type Clock, type Logger, sleep, systemClock } from "@slipway/process";
import type { Store } from "../cache/store.ts";
import type { KubeClient } from "../client/client.ts";
import { isOfResource } from "../client/resources.ts";
import { type KubernetesObject, type ObjectRef, type Resource, refOf } from "../client/types.ts";
import type { RuntimeCatalog } from "../controller/errors.ts";
import { RetryableError, WaitingError } from "../controller/errors.ts";
import type { RuntimeMetrics } from "../manager/runtime-metrics.ts";
import {
  type AppliedAnnotations,
  type ApplyIdentity,
  appliedAnnotations,
  isOwnChild,
  type Owner,
  prepare,
} from "./desired-object.ts";
import { findMissing } from "./subset.ts";

/** A kind of child and the store that its reflector keeps. The store needs the index that `Owner.label.key` names. */
export interface ChildKind {
  resource: Resource;
  store: Store<KubernetesObject>;
  /**
   * For objects that others refer to, when a third process watches both and may see either first: milliseconds until it
   * has surely seen a change. After one is created, live objects are changed only that much later; one is pruned only
   * that much later than they were changed.
   */
  propagationMs?: number;
}

export interface ApplierOptions {
  client: KubeClient;
  /** One for each controller, such as `website-controller`. */
  fieldManager: string;
  /** Domain of the annotations that mark children, such as `example.com`: `example.com/applied-hash`, `example.com/applied-by`. */
  annotationPrefix: string;
  kinds: readonly ChildKind[];
  metrics: RuntimeMetrics;
  clock?: Clock;
}

export interface ApplyContext {
  log: Logger;
  signal?: AbortSignal;
  /** Take over an object of the same name that nobody controls and that was not applied by us; false unless given. */
  adopt?: boolean;
  /** The kinds whose other children are pruned; all unless given. */
  prune?: readonly Resource[];
  /**
   * Objects that are written only as they were read, since a value in them is somebody else's: a change in between is a conflict,
   * and not undone. None unless given.
   */
  onlyAsRead?: (object: KubernetesObject) => boolean;
}

export interface ApplyResult {
  /** Objects that were sent. */
  applied: ObjectRef[];
  /** How many were left alone. */
  unchanged: number;
  pruned: ObjectRef[];
}

/** What one pass over an owner's children waits for. Monotonic times in milliseconds. */
interface Pass {
  /** When every created object has been seen by those that watch it. */
  propagatedAt: number;
  /** When a live object was last changed. */
  changedAt: number;
}

/** What is known of a child on the apiserver. */
interface KnownChild {
  uid: string;
  generation: number | undefined;
  /** Set when the apiserver keeps something else than was sent, so that it is not sent again and again. */
  disagreed?: { hash: string; resourceVersion: string };
}

/**
 * Reconciles the children of an owner with what is desired, by server-side apply, and writes nothing when nothing differs.
 * It compares with the live objects of the stores: so a restart writes nothing, and what was edited or deleted by hand is restored.
 *
 * What others added to a child (a field, a named entry of a list) stays, as server-side apply defines.
 */
export class Applier {
  readonly #options: ApplierOptions;
  readonly #identity: ApplyIdentity;
  /** What is known of each child, by uid. */
  readonly #known = new Map<string, KnownChild>();

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.#identity = {
      fieldManager: options.fieldManager,
      keys: appliedAnnotations(options.annotationPrefix),
    };
    for (const { store } of options.kinds) {
      store.subscribe((event) => {
        if (event.type === "delete") {
          this.#known.delete(event.object.metadata?.uid ?? "");
        }
      });
    }
  }

  /**
   * Applies the desired objects in order, then prunes the owner's other children, or those of the kinds in `prune`.
   *
   * @throws WaitingError `ChildTerminating` after all else is applied, when a desired object is still being deleted
   * @throws RetryableError `ChildConflict` when an object of that name belongs to somebody else
   * @throws KubeError when the apiserver refuses
   */
  async applyAndPrune(
    owner: Owner,
    desired: readonly KubernetesObject[],
    context: ApplyContext,
  ): Promise<ApplyResult> {
    const result: ApplyResult = { applied: [], unchanged: 0, pruned: [] };
    const terminating: string[] = [];
    const wanted = new Set<string>();
    const pass: Pass = { propagatedAt: Number.NEGATIVE_INFINITY, changedAt: Number.NEGATIVE_INFINITY };
    for (const object of desired) {
      const kind = this.#kindOf(object);
      wanted.add(childKey(kind.resource, object));
      const outcome = await this.#applyOne(
        kind,
        prepare(object, owner, this.#identity),
        owner,
        context,
        pass,
      );
      this.#count(kind.resource, outcome);
      if (outcome === "applied") {
        result.applied.push(refOf(object));
      } else if (outcome === "unchanged") {
        result.unchanged += 1;
      } else {
        terminating.push(kind.resource.kind);
      }
    }
    result.pruned = await this.#prune(owner, wanted, context, pass);
    if (terminating.length > 0) {
      throw new WaitingError<RuntimeCatalog>(
        "ChildTerminating",
        `waiting until the former ${terminating.join(", ")} is gone`,
        {
          requeueAfterMs: 5_000,
        },
      );
    }
    return result;
  }

  /**
   * Deletes every child of an owner and returns those that still exist, terminating ones too; call it until there are
   * none. Reads live, not from the stores.
   */
  async removeAll(owner: Owner, context: ApplyContext): Promise<{ resource: Resource; ref: ObjectRef }[]> {
    const { client, kinds } = this.#options;
    const { signal } = context;
    const remaining: { resource: Resource; ref: ObjectRef }[] = [];
    for (const { resource } of kinds) {
      const children = await client.listAll(resource, {
        labelSelector: `${owner.label.key}=${owner.label.value}`,
        namespace: resource.namespaced ? owner.namespace : undefined,
        signal,
      });
      for (const child of children.filter((object) => isOwnChild(object, owner, this.#identity))) {
        remaining.push({ resource, ref: refOf(child) });
        await this.#delete(resource, child, context);
      }
    }
    return remaining;
  }

  async #applyOne(
    kind: ChildKind,
    object: KubernetesObject,
    owner: Owner,
    context: ApplyContext,
    pass: Pass,
  ): Promise<"applied" | "unchanged" | "terminating"> {
    const { client, fieldManager } = this.#options;
    const { resource, store } = kind;
    const ref = refOf(object);
    // Not in the store may also mean: there, but without our label. Never take over what is somebody else's.
    const live =
      store.get(ref.namespace, ref.name) ??
      (await client.getOrUndefined(resource, ref, { signal: context.signal }));
    if (live) {
      const { keys } = this.#identity;
      if (!isOwnChild(live, owner, this.#identity) && !mayTakeOver(live, owner, keys, context.adopt)) {
        throw new RetryableError<RuntimeCatalog>(
          "ChildConflict",
          `a ${resource.kind} of the same name belongs to somebody else`,
        );
      }
      if (live.metadata?.deletionTimestamp) {
        return "terminating";
      }
      if (this.#isUnchanged(object, live)) {
        return "unchanged";
      }
      await this.#waitUntil(pass.propagatedAt, context);
    }
    const sent = live && context.onlyAsRead?.(object) ? asRead(object, live) : object;
    const written = await client.apply(resource, sent, { fieldManager, signal: context.signal });
    this.#remember(object, written, context.log);
    store.observe(written);
    const now = this.#clock.monotonic();
    if (live) {
      pass.changedAt = now;
    } else {
      pass.propagatedAt = Math.max(pass.propagatedAt, now + (kind.propagationMs ?? 0));
    }
    return "applied";
  }

  /** Whether the live object is what was desired, as far as is known without a request to the apiserver. */
  #isUnchanged(object: KubernetesObject, live: KubernetesObject): boolean {
    const hash = object.metadata?.annotations?.[this.#identity.keys.appliedHash];
    const uid = live.metadata?.uid ?? "";
    const known = this.#known.get(uid);
    const { disagreed } = known ?? {};
    if (disagreed?.hash === hash && disagreed?.resourceVersion === live.metadata?.resourceVersion) {
      return true;
    }
    if (live.metadata?.annotations?.[this.#identity.keys.appliedHash] !== hash) {
      return false;
    }
    if (findMissing(object, live) !== undefined) {
      return false;
    }
    // Somebody changed the spec where a comparison cannot see it (an addition to an atomic list): apply restores it.
    if (known && known.generation !== live.metadata?.generation) {
      return false;
    }
    if (!known) {
      this.#known.set(uid, { uid, generation: live.metadata?.generation });
    }
    return true;
  }

  #remember(object: KubernetesObject, written: KubernetesObject, log: Logger): void {
    const { uid = "", generation, resourceVersion = "" } = written.metadata ?? {};
    const child: KnownChild = { uid, generation };
    const path = findMissing(object, written);
    if (path !== undefined) {
      const hash = object.metadata?.annotations?.[this.#identity.keys.appliedHash] ?? "";
      child.disagreed = { hash, resourceVersion };
      log.warn({ kind: object.kind, path }, "the apiserver keeps something else than was applied");
    }
    this.#known.set(uid, child);
  }

  async #prune(
    owner: Owner,
    wanted: ReadonlySet<string>,
    context: ApplyContext,
    { changedAt }: Pass,
  ): Promise<ObjectRef[]> {
    const pruned: ObjectRef[] = [];
    for (const { resource, store, propagationMs = 0 } of this.#options.kinds) {
      if (context.prune && !context.prune.includes(resource)) {
        continue;
      }
      for (const child of store.byIndex(owner.label.key, owner.label.value)) {
        if (wanted.has(childKey(resource, child)) || child.metadata?.deletionTimestamp) {
          continue;
        }
        if (!isOwnChild(child, owner, this.#identity)) {
          continue;
        }
        await this.#waitUntil(changedAt + propagationMs, context);
        // The store may be behind: read live before anything destructive.
        const live = await this.#options.client.getOrUndefined(resource, refOf(child), {
          signal: context.signal,
        });
        if (!live || live.metadata?.uid !== child.metadata?.uid) {
          continue;
        }
        if (!isOwnChild(live, owner, this.#identity)) {
          continue;
        }
        if (await this.#delete(resource, live, context)) {
          pruned.push(refOf(live));
        }
      }
    }
    return pruned;
  }

  async #waitUntil(time: number, { signal }: ApplyContext): Promise<void> {
    const ms = time - this.#clock.monotonic();
    if (!(ms > 0)) {
      return;
    }
    await sleep(this.#clock, ms, signal);
    signal?.throwIfAborted();
  }

  get #clock(): Clock {
    return this.#options.clock ?? systemClock;
  }

  async #delete(resource: Resource, child: KubernetesObject, context: ApplyContext): Promise<boolean> {
    if (child.metadata?.deletionTimestamp) {
      return false;
    }
    const uid = child.metadata?.uid;
    const deleted = await this.#options.client.delete(resource, refOf(child), {
      uid,
      signal: context.signal,
    });
    if (deleted) {
      this.#count(resource, "pruned");
    }
    return deleted;
  }

  #kindOf(object: KubernetesObject): ChildKind {
    const kind = this.#options.kinds.find(({ resource }) => isOfResource(object, resource));
    if (!kind) {
      throw new TypeError(`no store for ${object.apiVersion} ${object.kind}: add it to the applier's kinds`);
    }
    return kind;
  }

  #count(resource: Resource, result: string): void {
    this.#options.metrics.applies.inc({
      field_manager: this.#options.fieldManager,
      kind: resource.kind,
      result,
    });
  }
}

/** One of ours that lost its annotations by hand, or one that may be adopted. */
function mayTakeOver(live: KubernetesObject, owner: Owner, keys: AppliedAnnotations, adopt = false): boolean {
  const controller = live.metadata?.ownerReferences?.find((reference) => reference.controller === true);
  if (controller) {
    return controller.uid === owner.reference?.uid;
  }
  const appliedBy = live.metadata?.annotations?.[keys.appliedBy];
  const labelled = live.metadata?.labels?.[owner.label.key] === owner.label.value;
  return labelled || (adopt && appliedBy === undefined);
}

function childKey(resource: Resource, object: KubernetesObject): string {
  return `${resource.plural}.${resource.group}/${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}`;
}

/** The object, to be written over this version of the live one and no other. */
function asRead(object: KubernetesObject, live: KubernetesObject): KubernetesObject {
  const { uid, resourceVersion } = live.metadata ?? {};
  return { ...object, metadata: { ...object.metadata, uid, resourceVersion } };
}
