/**
 * Observes events in the states of objects, and records them in the ledger. An event's id is made from the object's identity and
 * its transition: what is observed again, by this process or another, is recorded once. The ledger is read every few seconds for organizations
 * with webhooks; of the others nothing is recorded, and of theirs each event is, once by each process that comes to lead.
 */

import {
  customSource,
  type KubernetesObject,
  type Manager,
  type ObjectRef,
  refKey,
  type Store,
  watchObjects,
} from "@slipway/controller-runtime";
import { type Backup, type DomainClaim, organizationOfNamespace, type Project } from "@slipway/crds";
import { eventIdOf, type NotificationEvent } from "@slipway/ledger";
import { RetryableError } from "../reconcile-errors.ts";
import { eventsOfBackup, eventsOfClaim, eventsOfProject } from "./events.ts";
import type { Subscribers } from "./subscribers.ts";

/** Records an event for the webhooks that subscribe to it; one that is recorded already changes nothing. */
export type RecordEvent = (event: NotificationEvent) => Promise<unknown>;

/** Records the events of one kind of object. */
export class EventRecorder<T extends KubernetesObject> {
  readonly #store: Pick<Store<T>, "get">;
  readonly #eventsOf: (object: T) => NotificationEvent[];
  readonly #subscribers: Pick<Subscribers, "has">;
  readonly #record: RecordEvent;
  /** By object: the events that this process has recorded. Only those of its present state are kept. */
  readonly #recorded = new Map<string, ReadonlySet<string>>();

  constructor(
    store: Pick<Store<T>, "get">,
    eventsOf: (object: T) => NotificationEvent[],
    subscribers: Pick<Subscribers, "has">,
    record: RecordEvent,
  ) {
    this.#store = store;
    this.#eventsOf = eventsOf;
    this.#subscribers = subscribers;
    this.#record = record;
  }

  /** @throws RetryableError while the ledger is unavailable */
  async reconcile(ref: ObjectRef): Promise<void> {
    const key = refKey(ref);
    const object = this.#store.get(ref.namespace, ref.name);
    const events = object === undefined ? [] : this.#eventsOf(object);
    const subscribed = events.filter(({ organizationId }) => this.#subscribers.has(organizationId));
    if (subscribed.length === 0) {
      this.#recorded.delete(key);
      return;
    }
    const before = this.#recorded.get(key);
    for (const event of subscribed.filter((one) => !before?.has(eventIdOf(one)))) {
      await this.#record(event).catch((error: unknown) => {
        throw new RetryableError("LedgerUnavailable", "The ledger does not take an event.", { cause: error });
      });
    }
    this.#recorded.set(key, new Set(subscribed.map(eventIdOf)));
  }
}

export interface ObservedStores {
  projects: Store<Project>;
  backups: Store<Backup>;
  claims: Store<DomainClaim>;
}

/** Adds a controller for each kind. */
export function addEventObservers(
  manager: Manager,
  { projects, backups, claims }: ObservedStores,
  subscribers: Subscribers,
  record: RecordEvent,
): void {
  const add = <T extends KubernetesObject>(
    name: string,
    store: Store<T>,
    eventsOf: (object: T) => NotificationEvent[],
    organizationOf: (object: T) => string,
    isOwnKey?: (ref: ObjectRef, owns: (namespace?: string) => boolean) => boolean,
  ): void => {
    const recorder = new EventRecorder(store, eventsOf, subscribers, record);
    manager.addController({
      name,
      sources: [
        watchObjects(store),
        customSource((enqueue) =>
          subscribers.onChange((organizationIds) => {
            for (const object of store.list()) {
              if (organizationIds.has(organizationOf(object))) {
                enqueue(refKey({ namespace: object.metadata?.namespace, name: object.metadata?.name ?? "" }));
              }
            }
          }),
        ),
      ],
      workers: 2,
      backoff: { baseMs: 500, maxMs: 15_000 },
      reconcile: async (ref) => {
        await recorder.reconcile(ref);
        return undefined;
      },
      ...(isOwnKey ? { isOwnKey } : {}),
    });
  };
  add("project-events", projects, eventsOfProject, ofNamespace);
  add("backup-events", backups, eventsOfBackup, ofNamespace);
  add(
    "domain-events",
    claims,
    eventsOfClaim,
    ({ spec }) => spec.organization,
    ({ name }, owns) => {
      const claim = claims.get(undefined, name);
      return claim === undefined || owns(claim.spec.projectRef.namespace);
    },
  );
}

const ofNamespace = ({ metadata }: KubernetesObject): string =>
  organizationOfNamespace(metadata?.namespace ?? "") ?? "";
