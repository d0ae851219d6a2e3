import { isConflict, type KubeClient } from "@slipway/controller-runtime";
import { type Condition, type JobRun, organizationNamespace, type Project } from "@slipway/crds";
import type { JobRunRow } from "@slipway/ledger";
import { jobRunResource, projectResource } from "../../../api-server/src/resources.ts";

/** What tests use instead of the operator: runs, and what it reports of them. */

type RunStatus = NonNullable<JobRun["status"]>;

/** A condition of a run. */
export const condition = (type: string, status: "True" | "False", reason: string): Condition => ({
  type,
  status,
  reason,
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

/** A run as the operator makes it for an occurrence. */
export function runResource(
  { organizationId, projectId, id }: { organizationId: string; projectId: string; id: string },
  scheduledAt: Date,
  status?: RunStatus,
): JobRun {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "JobRun",
    metadata: {
      name: id,
      namespace: organizationNamespace(organizationId),
      labels: { "slipway.dev/project": projectId },
    },
    spec: { projectRef: { name: projectId }, trigger: "schedule", scheduledAt: scheduledAt.toISOString() },
    ...(status === undefined ? {} : { status }),
  };
}

/** A run that ended, as the ledger has it: 70 seconds, two minutes. */
export function runRow(
  names: { organizationId: string; projectId: string; id: string },
  scheduledAt: Date,
  change: Partial<JobRunRow> = {},
): JobRunRow {
  const startedAt = new Date(scheduledAt.getTime() + 2_000);
  const finishedAt = new Date(startedAt.getTime() + 70_000);
  return {
    organization_id: names.organizationId,
    project_id: names.projectId,
    project_uid: "00000000-0000-0000-0000-000000000001",
    id: names.id,
    trigger: "schedule",
    scheduled_at: scheduledAt,
    started_at: startedAt,
    finished_at: finishedAt,
    billed_until: finishedAt,
    status: "succeeded",
    billed_minutes: 2,
    plan: "job-premium",
    price_per_minute: "0.05",
    amount: "0.1",
    metrics: null,
    ...change,
  };
}

/** Plays the operator over an apiserver. */
export class OperatorActor {
  readonly #admin: KubeClient;

  constructor(admin: KubeClient) {
    this.#admin = admin;
  }

  async createRun(run: JobRun): Promise<JobRun> {
    const { status, ...made } = run;
    const created = await this.#admin.create<JobRun>(jobRunResource, made as JobRun);
    return status ? this.setStatus(created, status) : created;
  }

  /** Merges into a run's status. */
  setStatus({ metadata: { namespace, name } }: JobRun, status: RunStatus): Promise<JobRun> {
    return this.#admin.patch<JobRun>(
      jobRunResource,
      { namespace, name },
      { status },
      { subresource: "status" },
    );
  }

  removeRun({ metadata: { namespace, name } }: JobRun): Promise<boolean> {
    return this.#admin.delete(jobRunResource, { namespace, name });
  }

  listRuns(organizationId: string): Promise<JobRun[]> {
    return this.#admin.listAll<JobRun>(jobRunResource, { namespace: organizationNamespace(organizationId) });
  }

  run(organizationId: string, name: string): Promise<JobRun | undefined> {
    return this.#admin.getOrUndefined<JobRun>(jobRunResource, {
      namespace: organizationNamespace(organizationId),
      name,
    });
  }

  project(organizationId: string, name: string): Promise<Project> {
    return this.#admin.get<Project>(projectResource, {
      namespace: organizationNamespace(organizationId),
      name,
    });
  }

  /** Merges into `status.job` of a project. */
  patchProjectStatus(organizationId: string, name: string, job: Record<string, unknown>): Promise<Project> {
    return this.#patchProjectStatus(organizationId, name, { job });
  }

  /** Sets the condition Accepted for the current generation of a project. */
  async setAccepted(organizationId: string, name: string, accepted = true): Promise<Project> {
    const { metadata } = await this.project(organizationId, name);
    const accepts = accepted
      ? condition("Accepted", "True", "Accepted")
      : condition("Accepted", "False", "PlanUnknown");
    const { generation: observedGeneration = 0 } = metadata;
    return this.#patchProjectStatus(organizationId, name, {
      conditions: [{ ...accepts, observedGeneration }],
    });
  }

  async #patchProjectStatus(
    organizationId: string,
    name: string,
    status: Record<string, unknown>,
  ): Promise<Project> {
    const ref = { namespace: organizationNamespace(organizationId), name };
    for (;;) {
      try {
        return await this.#admin.patch<Project>(projectResource, ref, { status }, { subresource: "status" });
      } catch (error) {
        if (!isConflict(error)) {
          throw error;
        }
      }
    }
  }

  /** Lists runs again and again until stopped; `step` gets every run of the organization. */
  play(
    organizationId: string,
    step: (run: JobRun, actor: OperatorActor) => unknown,
  ): { stop: () => Promise<void> } {
    const stopped = new AbortController();
    const loop = async () => {
      while (!stopped.signal.aborted) {
        for (const run of await this.listRuns(organizationId)) {
          await step(run, this);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const running = loop();
    return {
      stop: async () => {
        stopped.abort();
        await running;
      },
    };
  }
}
