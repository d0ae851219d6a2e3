import type { Logger } from "@slipway/process";
import type { KubernetesObject } from "../client/types.ts";
import type { AppliedAnnotations } from "./desired-object.ts";
import { findMissing } from "./subset.ts";

/** What is known of a child on the apiserver. */
interface KnownChild {
  uid: string;
  generation: number | undefined;
  /** Set when the apiserver keeps something else than was sent, so that it is not sent again and again. */
  disagreed?: { hash: string; resourceVersion: string };
}

/** What is known of each child, so that only those are sent that differ from what is desired. */
export class KnownChildren {
  readonly #keys: AppliedAnnotations;
  /** By uid. */
  readonly #known = new Map<string, KnownChild>();

  constructor(keys: AppliedAnnotations) {
    this.#keys = keys;
  }

  /** Whether the live object is what was desired, as far as is known without a request to the apiserver. */
  isUnchanged(object: KubernetesObject, live: KubernetesObject): boolean {
    const hash = object.metadata?.annotations?.[this.#keys.appliedHash];
    const uid = live.metadata?.uid ?? "";
    const known = this.#known.get(uid);
    const { disagreed } = known ?? {};
    if (disagreed?.hash === hash && disagreed?.resourceVersion === live.metadata?.resourceVersion) {
      return true;
    }
    if (live.metadata?.annotations?.[this.#keys.appliedHash] !== hash) {
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

  /** Records what the apiserver has returned for an applied object. */
  remember(object: KubernetesObject, written: KubernetesObject, log: Logger): void {
    const { uid = "", generation, resourceVersion = "" } = written.metadata ?? {};
    const child: KnownChild = { uid, generation };
    const path = findMissing(object, written);
    if (path !== undefined) {
      const hash = object.metadata?.annotations?.[this.#keys.appliedHash] ?? "";
      child.disagreed = { hash, resourceVersion };
      log.warn({ kind: object.kind, path }, "the apiserver keeps something else than was applied");
    }
    this.#known.set(uid, child);
  }

  /** A child that was deleted. */
  forget({ metadata }: KubernetesObject): void {
    this.#known.delete(metadata?.uid ?? "");
  }
}
