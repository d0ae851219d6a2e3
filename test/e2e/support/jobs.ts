import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { type Answer, type apiClient, createProject, readProject, untilStatus } from "./api.ts";
import { eventually } from "./eventually.ts";
import { stack } from "./stack.ts";

export const MINUTE_MS = 60_000;
export const EVERY_MINUTE = "* * * * *";
/** A schedule that no test lives to see: what runs on it was asked for. */
export const HARDLY_EVER = "0 0 29 2 *";

export interface JobRun {
  readonly id: string;
  readonly status: "running" | "succeeded" | "failed" | "deadline_exceeded" | "cancelled";
  readonly trigger: "schedule" | "manual";
  readonly scheduled_at: string;
  readonly started_at: string;
  readonly finished_at?: string;
  readonly duration_seconds?: number;
  readonly billed_minutes?: number;
  readonly plan: string;
  readonly amount?: number;
  readonly currency: string;
}

export interface RunList {
  readonly runs: readonly JobRun[];
  readonly pagination: { page: number; limit: number; total: number; total_pages: number };
  readonly cycle_started_at: string;
  readonly next_reset_at: string;
}

export interface CostSummary {
  readonly totals: readonly {
    currency: string;
    total_amount: number;
    executed_runs: number;
    billed_minutes: number;
    billed_runs: number;
  }[];
}

export interface RunMetrics {
  readonly run_id: string;
  readonly status: "collecting" | "available" | "unavailable";
  readonly window: { started_at: string; finished_at?: string };
  readonly cpu?: { average_cores?: number; peak_cores?: number; latest_cores?: number };
  readonly memory?: { average_bytes?: number; peak_bytes?: number; latest_bytes?: number };
  readonly samples?: number;
}

export interface MissedRuns {
  readonly total: number;
  readonly reasons: readonly { reason: string; count: number; last_scheduled_at: string }[];
}

type RunSummary = Pick<JobRun, "id" | "status" | "billed_minutes" | "currency">;
type Call = ReturnType<typeof apiClient>;

/** A job whose container runs a shell script. */
export interface JobBody {
  readonly name: string;
  readonly cron?: string;
  readonly script?: string;
  readonly plan?: string;
  readonly config?: Readonly<Record<string, unknown>>;
}

/** A legal body of `POST /v1/project` for a job; it runs the sample's own command without a script. */
export function jobProject({ name, cron = HARDLY_EVER, script, plan = "job-basic", config }: JobBody) {
  const words = script === undefined ? {} : { command: ["/bin/sh", "-c"], args: [script] };
  return {
    name,
    plan,
    payment_mode: "per_minute",
    config: {
      type_project: "job",
      image: { url: stack.imageJob, is_public: true },
      envs: [],
      storage: { persistent: false, capacity: 1 },
      job: { cron, ...words },
      ...config,
    },
  };
}

/** One job, over the API. */
export class Job {
  readonly id: string;
  readonly call: Call;

  constructor(call: Call, id: string) {
    this.call = call;
    this.id = id;
  }

  /** Creates it and waits until its schedule is in place. */
  static async create(call: Call, body: JobBody): Promise<Job> {
    // A new organization's namespace may be a moment behind.
    const { project_id } = await eventually(() => createProject(call, jobProject(body)));
    await untilStatus(call, project_id, "running");
    return new Job(call, project_id);
  }

  get #runs(): string {
    return `/v1/project/${this.id}/job-runs`;
  }

  async list(query = ""): Promise<RunList> {
    return data(await this.call<RunList>("GET", `${this.#runs}${query}`));
  }

  async runs(): Promise<readonly JobRun[]> {
    return (await this.list("?limit=50")).runs;
  }

  async run(id: string): Promise<JobRun> {
    const run = (await this.runs()).find((one) => one.id === id);
    if (run === undefined) {
      throw new Error(`run ${id} is not listed`);
    }
    return run;
  }

  async costs() {
    const { totals } = data(await this.call<CostSummary>("GET", `${this.#runs}/cost-summary`));
    expect(totals).toHaveLength(1);
    return totals[0];
  }

  /** Requests a run now. */
  start(key?: string): Promise<Answer<{ run: { id: string; scheduled_at: string } }>> {
    return this.call("POST", this.#runs, undefined, key === undefined ? {} : { "idempotency-key": key });
  }

  /** Runs it now and waits until its container has started. */
  async running(): Promise<JobRun> {
    const started = await this.start();
    expect(started).toMatchObject({ status: 202, body: { status: "success" } });
    const id = started.body.data?.run.id ?? "";
    return eventually(() => this.run(id), { every: 250 });
  }

  cancel(id: string): Promise<Answer<{ run: RunSummary }>> {
    return this.call("POST", `${this.#runs}/${id}/cancel`);
  }

  async log(id: string) {
    return data(await this.call<{ run: RunSummary; logs: string }>("GET", `${this.#runs}/${id}/logs`));
  }

  async metrics(id: string): Promise<RunMetrics> {
    return data(await this.call<RunMetrics>("GET", `${this.#runs}/${id}/metrics`));
  }

  schedule(cron: string): Promise<Answer<{ cron: string; timezone: string }>> {
    return this.call("PATCH", `/v1/project/${this.id}/schedule`, { cron });
  }

  async missed(): Promise<MissedRuns> {
    return ((await readProject(this.call, this.id)) as unknown as { missed_runs: MissedRuns }).missed_runs;
  }

  delete(): Promise<Answer<unknown>> {
    return this.call("DELETE", `/v1/project/${this.id}`);
  }

  /** Waits until the run has ended, and gives it. */
  ended(id: string): Promise<JobRun> {
    return eventually(async () => {
      const run = await this.run(id);
      expect(run.finished_at).toBeDefined();
      return run;
    });
  }
}

function data<T>(answer: Answer<T>): T {
  expect(answer).toMatchObject({ status: 200, body: { status: "success" } });
  return answer.body.data as T;
}

/** Sleeps until a moment of this machine's clock, which is the cluster's too. */
export const until = (moment: number): Promise<void> => sleep(Math.max(0, moment - Date.now()));

/** The next full minute that is at least some time away. */
export const nextMinute = (ahead: number): number => Math.ceil((Date.now() + ahead) / MINUTE_MS) * MINUTE_MS;

/** BRL cents in ten-thousandths, exact for every price of four digits. */
export const tenThousandths = (amount: number | undefined): number =>
  Math.round((amount ?? Number.NaN) * 10_000);

/** Ends every run and deletes every job of a test, however far it came. */
export async function deleteJobs(jobs: readonly Job[]): Promise<void> {
  await Promise.all(
    jobs.map((job) =>
      eventually(async () => {
        const { status, body } = await job.delete();
        if (status === 200 || (status === 409 && body.code !== "JOB_RUNS_PENDING")) {
          return;
        }
        const running = await job.list("?limit=50&status=running");
        await Promise.all(running.runs.map(({ id }) => job.cancel(id)));
        throw new Error(`DELETE ${job.id} answered ${status} ${body.code}`);
      }),
    ),
  );
}
