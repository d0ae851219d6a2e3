/** What users do with runs: they start them by hand, and cancel them, some backdated. */

import { KubeError, type ObjectRef } from "@slipway/controller-runtime";
import { jobRunName, labels, MANAGED_BY } from "@slipway/crds";
import { jobRunResource, projectResource } from "../../operator/src/resources.ts";
import type { Apiserver } from "./apiserver.ts";
import { controllerOf, type StoredJobRun, type StoredProject } from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export const NAMESPACE = "slipway-org-sim";

export interface RunRequestOptions {
  /** Of all runs, those that somebody cancels. */
  cancels: number;
  /** Of those, the ones that are backdated to pay less. */
  backdated: number;
}

export class RunRequests {
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #chance: Chance;
  readonly #options: RunRequestOptions;
  readonly #frauds: Chance;

  constructor(
    timeline: Timeline,
    api: Apiserver,
    chance: Chance,
    options: RunRequestOptions,
    frauds: Chance,
  ) {
    this.#timeline = timeline;
    this.#api = api;
    this.#chance = chance;
    this.#options = options;
    this.#frauds = frauds;
  }

  /** Runs a project's job by hand, at times twice concurrently. */
  runNow(ref: ObjectRef): void {
    const times = this.#chance.happens(0.2) ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      this.#timeline.after(this.#chance.between(0, 30), () => {
        const project = liveProject(this.#api, ref);
        if (!project) {
          return;
        }
        const now = new Date(this.#timeline.now);
        this.#api.create(jobRunResource, {
          apiVersion: "slipway.dev/v1alpha1",
          metadata: {
            name: jobRunName(project.metadata.name, now, this.#chance.text(6)),
            namespace: NAMESPACE,
            // kubectl users give nothing but the spec.
            ...(this.#chance.happens(0.7)
              ? {
                  labels: {
                    [labels.managedBy]: MANAGED_BY,
                    [labels.organization]: "sim",
                    [labels.project]: project.metadata.name,
                  },
                  ownerReferences: [controllerOf(project)],
                }
              : {}),
          },
          spec: {
            projectRef: { name: project.metadata.name },
            trigger: "manual",
            scheduledAt: now.toISOString(),
          },
        });
      });
    }
  }

  /** May cancel a run some time after its creation. */
  mayCancel({ metadata }: StoredJobRun): void {
    if (!this.#chance.happens(this.#options.cancels)) {
      return;
    }
    const ref = { namespace: metadata.namespace, name: metadata.name };
    const at = this.#chance.happens(0.5) ? this.#chance.between(0, 20_000) : this.#chance.exponential(90_000);
    const times = this.#chance.happens(0.3) ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      this.#timeline.after(at + this.#chance.between(0, 20), () => this.#cancel(ref));
    }
  }

  /** As the API does: once, and not where the end could not be confirmed. */
  #cancel(ref: ObjectRef): void {
    const run = this.#api.get<StoredJobRun>(jobRunResource, ref);
    if (!run || run.spec.cancelRequestedAt !== undefined) {
      return;
    }
    const { phase, conditions } = run.status ?? {};
    if (phase !== undefined && phase !== "running") {
      return;
    }
    if (conditions?.some(({ type, status }) => type === "CancelUnsafe" && status === "True")) {
      return;
    }
    const frauds = this.#frauds;
    const back = frauds.happens(this.#options.backdated) ? frauds.exponential(600_000) : 0;
    const requestedAt = new Date(this.#timeline.now + this.#chance.between(-800, 800) - back).toISOString();
    this.#timeline.after(this.#chance.between(1, 40), () => {
      try {
        const { resourceVersion } = run.metadata;
        this.#api.patch(jobRunResource, ref, {
          metadata: { resourceVersion },
          spec: { cancelRequestedAt: requestedAt },
        });
      } catch (error) {
        if (!(error instanceof KubeError)) {
          throw error;
        }
        if (error.status === 409) {
          this.#cancel(ref);
        }
      }
    });
  }
}

/** A project, unless it is being deleted. */
export function liveProject(api: Apiserver, ref: ObjectRef): StoredProject | undefined {
  const project = api.get<StoredProject>(projectResource, ref);
  return project?.metadata.deletionTimestamp === undefined ? project : undefined;
}
