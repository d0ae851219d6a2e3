/**
 * What the project controller does for a job: its CronJob, whether it is accepted, and its deletion, which closes the
 * schedule and waits until every run is charged. It acts late by random amounts and takes no slot.
 */

import { type ObjectRef, parseKey, refKey, resources } from "@slipway/controller-runtime";
import { annotations, finalizers, labels, MANAGED_BY } from "@slipway/crds";
import { jobRunResource, projectResource } from "../../operator/src/resources.ts";
import type { Apiserver } from "./apiserver.ts";
import {
  controllerOf,
  type StoredCronJob,
  type StoredJobRun,
  type StoredProject,
  wholeSeconds,
} from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";
import { DelayQueue } from "./timeline.ts";

export interface ProjectControllerOptions {
  limitSeconds: number;
  windowSeconds: number;
}

export class ProjectController {
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #chance: Chance;
  readonly #options: ProjectControllerOptions;
  readonly #queue: DelayQueue;
  /** Projects that lack something that they need. */
  readonly #unaccepted = new Set<string>();

  constructor(timeline: Timeline, api: Apiserver, chance: Chance, options: ProjectControllerOptions) {
    this.#timeline = timeline;
    this.#api = api;
    this.#chance = chance;
    this.#options = options;
    this.#queue = new DelayQueue(timeline, (key) => this.#sync(parseKey(key)));
    api.onChange(({ type, resource, object, old }) => {
      if (resource !== projectResource || type === "delete") {
        return;
      }
      if (
        object.spec !== old?.spec ||
        object.metadata.deletionTimestamp !== old?.metadata.deletionTimestamp
      ) {
        this.#soon(object.metadata);
      }
    });
  }

  /** Takes something away that a project needs, or gives it back. */
  accept(ref: ObjectRef, accepted: boolean): void {
    if (accepted) {
      this.#unaccepted.delete(refKey(ref));
    } else {
      this.#unaccepted.add(refKey(ref));
    }
    this.#soon(ref);
  }

  #soon(ref: ObjectRef): void {
    const late = this.#chance.happens(0.02);
    this.#queue.add(refKey(ref), late ? this.#chance.between(1_000, 20_000) : this.#chance.between(20, 400));
  }

  #sync(ref: ObjectRef): void {
    const project = this.#api.get<StoredProject>(projectResource, ref);
    if (!project?.spec.job) {
      return;
    }
    this.#applyCronJob(project);
    if (project.metadata.deletionTimestamp !== undefined) {
      this.#finish(project);
    } else {
      this.#markAccepted(project);
    }
  }

  #markAccepted(project: StoredProject): void {
    const accepted = !this.#unaccepted.has(refKey(project.metadata));
    const status = accepted ? "True" : "False";
    const present = project.status?.conditions?.find(({ type }) => type === "Accepted");
    const observedGeneration = project.metadata.generation;
    if (present?.status === status && present.observedGeneration === observedGeneration) {
      return;
    }
    const condition = {
      type: "Accepted",
      status,
      reason: accepted ? "Accepted" : "SecretNotFound",
      message: "",
      observedGeneration,
      lastTransitionTime:
        present?.status === status ? present.lastTransitionTime : wholeSeconds(this.#timeline.now),
    };
    this.#api.patch(
      projectResource,
      project.metadata,
      { status: { observedGeneration, conditions: [condition] } },
      { subresource: "status" },
    );
  }

  #applyCronJob(project: StoredProject): void {
    const ref = { namespace: project.metadata.namespace, name: project.metadata.name };
    const spec = this.#cronJobSpec(project);
    const live = this.#api.get<StoredCronJob>(resources.cronJobs, ref);
    if (live) {
      this.#api.patch(resources.cronJobs, ref, { spec });
    } else if (project.metadata.deletionTimestamp === undefined) {
      this.#api.create(resources.cronJobs, {
        apiVersion: "batch/v1",
        metadata: { ...ref, labels: marks(project), ownerReferences: [controllerOf(project)] },
        spec,
      });
    }
  }

  #cronJobSpec(project: StoredProject): StoredCronJob["spec"] {
    const { job, paused, plan } = project.spec;
    const resting =
      paused === true || job?.closedAt !== undefined || project.metadata.deletionTimestamp !== undefined;
    return {
      schedule: job?.cron ?? "",
      timeZone: "Etc/UTC",
      suspend: resting,
      concurrencyPolicy: "Forbid",
      startingDeadlineSeconds: this.#options.windowSeconds,
      jobTemplate: {
        metadata: { labels: marks(project), annotations: { [annotations.plan]: plan } },
        spec: {
          suspend: true,
          backoffLimit: 0,
          podReplacementPolicy: "Failed",
          activeDeadlineSeconds: this.#options.limitSeconds + 20 * 60,
          template: {
            metadata: { labels: marks(project), finalizers: [finalizers.jobRun] },
            spec: {
              restartPolicy: "Never",
              terminationGracePeriodSeconds: 30,
              containers: [{ name: "app", image: "app" }],
            },
          },
        },
      },
    };
  }

  /** Continues a deletion once no run is left that is not charged. */
  #finish(project: StoredProject): void {
    const { namespace, name, uid } = project.metadata;
    const runs = this.#api
      .list<StoredJobRun>(jobRunResource)
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.projectRef.name === name);
    const charged = runs.every(
      ({ status }) =>
        status?.chargedAt !== undefined ||
        status?.conditions?.some((item) => item.type === "Admitted" && item.status === "False") ||
        status?.conditions?.some((item) => item.type === "Charged" && item.status === "True"),
    );
    const closed = project.status?.job?.scheduleClosedAt !== undefined;
    if (!charged || !closed || project.status?.job?.activeRun !== undefined) {
      this.#queue.add(refKey(project.metadata), this.#chance.between(1_000, 3_000));
      return;
    }
    if (this.#api.get(resources.cronJobs, { namespace, name })) {
      this.#api.delete(resources.cronJobs, { namespace, name });
    }
    const remaining = (project.metadata.finalizers ?? []).filter((item) => item !== finalizers.project);
    this.#api.patch(projectResource, { namespace, name }, { metadata: { uid, finalizers: remaining } });
  }
}

/** Labels that every child of a project has. */
function marks(project: StoredProject): Record<string, string> {
  return {
    [labels.managedBy]: MANAGED_BY,
    [labels.organization]: (project.metadata.namespace ?? "").replace(/^slipway-org-/, ""),
    [labels.project]: project.metadata.name,
    [labels.type]: "job",
  };
}
