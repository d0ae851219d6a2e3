/** Users of the model: through the API or kubectl they cancel, run, pause, change, close and delete, at any time. */

import { KubeError, type ObjectRef } from "@slipway/controller-runtime";
import { finalizers, jobRunName, labels, MANAGED_BY } from "@slipway/crds";
import { jobRunResource, projectResource } from "../../operator/src/resources.ts";
import type { Apiserver } from "./apiserver.ts";
import { PLANS } from "./catalog.ts";
import { controllerOf, type StoredJobRun, type StoredProject } from "./objects.ts";
import type { ProjectController } from "./project-controller.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export const NAMESPACE = "slipway-org-sim";

/** Mostly every minute: that is where everything meets. */
const SCHEDULES = ["* * * * *", "* * * * *", "* * * * *", "*/2 * * * *", "*/5 * * * *", "7,8,9,30 * * * *"];

export interface UsersOptions {
  projects: number;
  /** Of all runs, those that somebody cancels. */
  cancels: number;
  /** Of those, the ones that are backdated to pay less. */
  backdated: number;
  /** Milliseconds between two things that users do with one project, on the average. */
  everyMs: number;
}

export class Users {
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #chance: Chance;
  readonly #controller: ProjectController;
  readonly #options: UsersOptions;
  readonly #frauds: Chance;
  #made = 0;
  #stopped = false;

  constructor(
    timeline: Timeline,
    api: Apiserver,
    chance: Chance,
    controller: ProjectController,
    options: UsersOptions,
    frauds: Chance,
  ) {
    this.#frauds = frauds;
    this.#timeline = timeline;
    this.#api = api;
    this.#chance = chance;
    this.#controller = controller;
    this.#options = options;
    api.onChange(({ type, resource, object }) => {
      if (resource === jobRunResource && type === "add" && !this.#stopped) {
        this.#mayCancel(object as StoredJobRun);
      }
    });
    for (let index = 0; index < options.projects; index += 1) {
      timeline.after(chance.between(0, 120_000), () => this.#create());
    }
  }

  /** Does nothing any more, but closes every schedule. */
  stop(): void {
    this.#stopped = true;
    for (const { metadata } of this.#api.list<StoredProject>(projectResource)) {
      this.#controller.accept(metadata, true);
      this.#patch(metadata, { job: { closedAt: this.#now() } });
    }
  }

  #create(): void {
    if (this.#stopped) {
      return;
    }
    this.#made += 1;
    const name = `p${this.#made.toString().padStart(4, "0")}`;
    this.#api.create(projectResource, {
      apiVersion: "slipway.dev/v1alpha1",
      metadata: {
        name,
        namespace: NAMESPACE,
        labels: { [labels.organization]: "sim" },
        finalizers: [finalizers.project],
      },
      spec: {
        type: "job",
        name,
        plan: this.#chance.pick(PLANS),
        paymentMode: "per_minute",
        image: { url: "registry.example/team/job:1", isPublic: true },
        job: { cron: this.#chance.pick(SCHEDULES) },
      },
    });
    this.#planNext({ namespace: NAMESPACE, name });
  }

  /** The next thing that happens to a project. */
  #planNext(ref: ObjectRef): void {
    const { everyMs } = this.#options;
    if (!Number.isFinite(everyMs)) {
      return;
    }
    this.#timeline.after(this.#chance.exponential(everyMs), () => {
      if (this.#stopped || !this.#project(ref)) {
        return;
      }
      const action = this.#chance.weighted({
        run: 6,
        pause: 3,
        schedule: 3,
        plan: 3,
        close: 2,
        unaccept: 1,
        remove: 1,
        flap: 1,
        touch: 3,
      });
      if (action === "run") {
        this.#runNow(ref);
      } else if (action === "pause") {
        this.#forAWhile(ref, { paused: true }, { paused: false });
      } else if (action === "schedule") {
        this.#patch(ref, { job: { cron: this.#chance.pick(SCHEDULES) } });
      } else if (action === "plan") {
        this.#patch(ref, { plan: this.#chance.pick(PLANS) });
      } else if (action === "close") {
        this.#forAWhile(ref, { job: { closedAt: this.#now() } }, { job: { closedAt: null } });
      } else if (action === "unaccept") {
        this.#unaccept(ref);
      } else if (action === "remove") {
        this.#remove(ref);
      } else if (action === "flap") {
        this.#flap(ref);
      } else {
        this.#touch(ref);
      }
      this.#planNext(ref);
    });
  }

  #forAWhile(ref: ObjectRef, change: object, back: object): void {
    this.#patch(ref, change);
    this.#timeline.after(this.#chance.exponential(240_000), () => {
      if (!this.#stopped) {
        this.#patch(ref, back);
      }
    });
  }

  /** Pauses and resumes immediately, and the same with closing: the operator may never see the state between. */
  #flap(ref: ObjectRef): void {
    this.#patch(ref, { paused: true });
    this.#timeline.after(this.#chance.between(0, 300), () => this.#patch(ref, { paused: false }));
  }

  /** Another writer's change, so that what the operator read is not the newest. */
  #touch(ref: ObjectRef): void {
    for (let time = 0; time < 20; time += 1) {
      this.#timeline.after(this.#chance.between(0, 60_000), () => {
        if (this.#project(ref)) {
          this.#api.patch(projectResource, ref, { spec: { updatedAt: this.#now() } });
        }
      });
    }
  }

  #unaccept(ref: ObjectRef): void {
    this.#controller.accept(ref, false);
    this.#timeline.after(this.#chance.exponential(200_000), () => this.#controller.accept(ref, true));
  }

  /** Deletes the project, and makes another one later. */
  #remove(ref: ObjectRef): void {
    if (this.#chance.happens(0.5)) {
      this.#patch(ref, { job: { closedAt: this.#now() } });
    }
    this.#timeline.after(this.#chance.between(0, 20_000), () => {
      if (!this.#stopped && this.#project(ref)) {
        this.#api.delete(projectResource, ref);
      }
    });
    this.#timeline.after(this.#chance.between(60_000, 400_000), () => this.#create());
  }

  #runNow(ref: ObjectRef): void {
    const times = this.#chance.happens(0.2) ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      this.#timeline.after(this.#chance.between(0, 30), () => {
        const project = this.#project(ref);
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

  #mayCancel({ metadata }: StoredJobRun): void {
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

  #patch(ref: ObjectRef, spec: object): void {
    if (this.#project(ref)) {
      this.#api.patch(projectResource, ref, { spec });
    }
  }

  /** The project, unless it is being deleted. */
  #project(ref: ObjectRef): StoredProject | undefined {
    const project = this.#api.get<StoredProject>(projectResource, ref);
    return project?.metadata.deletionTimestamp === undefined ? project : undefined;
  }

  #now(): string {
    return new Date(this.#timeline.now).toISOString();
  }
}
