import { type Clock, sleep, systemClock } from "@slipway/process";
import { isAlreadyExists } from "../client/errors.ts";
import { isOfResource } from "../client/resources.ts";
import { type KubernetesObject, type ObjectRef, type Resource, refOf } from "../client/types.ts";
import { RetryableError, type RuntimeCatalog, WaitingError } from "../controller/errors.ts";
import { ownByApply } from "./created-fields.ts";
import {
  type ApplyIdentity,
  appliedAnnotations,
  asCreated,
  asRead,
  childKey,
  isAsCreated,
  isOwnChild,
  mayTakeOver,
  type Owner,
  prepare,
} from "./desired-object.ts";
import { KnownChildren } from "./known-children.ts";
import type { ApplierOptions, ApplyContext, ApplyResult, ChildKind } from "./options.ts";

/** What one pass over an owner's children waits for. Monotonic times in milliseconds. */
interface Pass {
  /** When every created object has been seen by those that watch it. */
  propagatedAt: number;
  /** When a live object was last changed. */
  changedAt: number;
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
  readonly #known: KnownChildren;

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.#identity = {
      fieldManager: options.fieldManager,
      keys: appliedAnnotations(options.annotationPrefix),
    };
    this.#known = new KnownChildren(this.#identity.keys);
    for (const { store } of options.kinds) {
      store.subscribe((event) => {
        if (event.type === "delete") {
          this.#known.forget(event.object);
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
        `waiting until the former ${terminating.join(", ")} is deleted`,
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
    const { signal } = context;
    const { resource, store } = kind;
    const ref = refOf(object);
    let live = store.get(ref.namespace, ref.name);
    if (!live) {
      const created = kind.rarelyChanges ? await this.#create(resource, object, context) : undefined;
      if (created) {
        this.#remember(kind, object, created, context);
        this.#markCreated(kind, pass);
        return "applied";
      }
      // Not in the store, and yet it exists: without our label, or since a moment ago.
      live = await client.getOrUndefined(resource, ref, { signal });
    }
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
      if (this.#known.isUnchanged(object, live)) {
        return "unchanged";
      }
      await this.#waitUntil(pass.propagatedAt, context);
      if (isAsCreated(live, this.#identity)) {
        live = await ownByApply(live, resource, { client, fieldManager, signal });
      }
    }
    const sent = live && context.onlyAsRead?.(object) ? asRead(object, live) : object;
    const written = await client.apply(resource, sent, { fieldManager, signal });
    this.#remember(kind, object, written, context);
    if (live) {
      pass.changedAt = this.#clock.monotonic();
    } else {
      this.#markCreated(kind, pass);
    }
    return "applied";
  }

  #markCreated({ propagationMs = 0 }: ChildKind, pass: Pass): void {
    pass.propagatedAt = Math.max(pass.propagatedAt, this.#clock.monotonic() + propagationMs);
  }

  /**
   * Creates a child: for the apiserver that takes half of what reading that there is none and applying it takes.
   * @returns it; undefined when there is one of its name
   */
  async #create(
    resource: Resource,
    object: KubernetesObject,
    { signal }: ApplyContext,
  ): Promise<KubernetesObject | undefined> {
    const { client, fieldManager } = this.#options;
    try {
      return await client.create(resource, asCreated(object, this.#identity), { fieldManager, signal });
    } catch (error) {
      if (isAlreadyExists(error)) {
        return undefined;
      }
      throw error;
    }
  }

  #remember(
    { store }: ChildKind,
    object: KubernetesObject,
    written: KubernetesObject,
    { log }: ApplyContext,
  ): void {
    this.#known.remember(object, written, log);
    store.observe(written);
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
