/** Users of the model: through the API or kubectl they cancel, run, pause, change, close and delete, at any time. */

import type { ObjectRef } from "@slipway/controller-runtime";
import { finalizers, labels } from "@slipway/crds";
import { jobRunResource, projectResource } from "../../operator/src/resources.ts";
import type { Apiserver } from "./apiserver.ts";
import { PLANS } from "./catalog.ts";
import type { StoredJobRun, StoredProject } from "./objects.ts";
import type { ProjectController } from "./project-controller.ts";
import type { Chance } from "./random.ts";
import { liveProject, NAMESPACE, type RunRequestOptions, RunRequests } from "./run-requests.ts";
import type { Timeline } from "./timeline.ts";

/** Mostly every minute: that is where everything meets. */
const SCHEDULES = ["* * * * *", "* * * * *", "* * * * *", "*/2 * * * *", "*/5 * * * *", "7,8,9,30 * * * *"];

export interface UsersOptions extends RunRequestOptions {
  projects: number;
  /** Milliseconds between two things that users do with one project, on the average. */
  everyMs: number;
}

export class Users {
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #chance: Chance;
  readonly #controller: ProjectController;
  readonly #options: UsersOptions;
  readonly #requests: RunRequests;
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
    this.#requests = new RunRequests(timeline, api, chance, options, frauds);
    this.#timeline = timeline;
    this.#api = api;
    this.#chance = chance;
    this.#controller = controller;
    this.#options = options;
    api.onChange(({ type, resource, object }) => {
      if (resource === jobRunResource && type === "add" && !this.#stopped) {
        this.#requests.mayCancel(object as StoredJobRun);
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
        this.#requests.runNow(ref);
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

  #patch(ref: ObjectRef, spec: object): void {
    if (this.#project(ref)) {
      this.#api.patch(projectResource, ref, { spec });
    }
  }

  #project(ref: ObjectRef): StoredProject | undefined {
    return liveProject(this.#api, ref);
  }

  #now(): string {
    return new Date(this.#timeline.now).toISOString();
  }
}
