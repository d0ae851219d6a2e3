import { type KubernetesObject, Reflector, refOf, resources, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { sql } from "kysely";
import { scriptArgs } from "../../hack/cluster/kwok-config.ts";
import { waitFor } from "../../hack/lib/wait.ts";
import { type JobPlatform, jobProject, NOT_NOW, projectResource } from "../kit/processes/job-platform.ts";

interface CronJob extends KubernetesObject {
  spec?: { schedule?: string };
}

interface Pod extends KubernetesObject {
  metadata: { name: string; namespace: string; labels?: Record<string, string> };
  status?: {
    containerStatuses?: {
      state?: { running?: { startedAt?: string }; terminated?: { startedAt?: string } };
    }[];
  };
}

const AT_ONCE = 16;
const RUN_SECONDS = 2;
/** Label of CronJobs that Slipway has nothing to do with, and of their pods. */
const PLAIN = "bench.test/plain";

/** Does something for each of many, several at a time. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let item = left.pop(); item !== undefined; item = left.pop()) {
        await work(item);
      }
    }),
  );
}

/** Schedule of one minute of one day, in UTC. */
export const cronAt = (at: Date): string => `${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;

/** Many jobs on a platform, and beside them CronJobs as Kubernetes has them. */
export class JobLoad {
  readonly #platform: JobPlatform;
  readonly #abort = new AbortController();
  readonly #projects: Store<Project>;
  readonly #cronJobs: Store<CronJob>;
  /** The projects, spread evenly over the organizations. */
  readonly refs: readonly { namespace: string; name: string }[];

  constructor(platform: JobPlatform, jobs: number) {
    this.#platform = platform;
    const { client, namespaces } = platform;
    const follow = <T extends KubernetesObject>(resource: typeof projectResource) => {
      const store = new Store<T>();
      void new Reflector<T>({ client, resource, store }).run(this.#abort.signal);
      return store;
    };
    this.#projects = follow<Project>(projectResource);
    this.#cronJobs = follow<CronJob>(resources.cronJobs);
    this.refs = Array.from({ length: jobs }, (_, index) => ({
      namespace: namespaces[index % namespaces.length] ?? "",
      name: `bench-${index}`,
    }));
  }

  stop(): void {
    this.#abort.abort();
  }

  /** Creates the projects, due outside the measurement, and waits for their CronJobs. */
  async create(): Promise<void> {
    const { client } = this.#platform;
    await forEach(this.refs, (ref) =>
      client.create(projectResource, jobProject(ref, { run: RUN_SECONDS }, NOT_NOW)),
    );
    await this.#followed(() => NOT_NOW, 900_000);
  }

  /** Gives every project another schedule, and waits until operator and controller-manager follow it. */
  async schedule(cronOf: (index: number) => string): Promise<void> {
    const { client } = this.#platform;
    const indexed = this.refs.map((ref, index) => ({ ref, cron: cronOf(index) }));
    await forEach(indexed, ({ ref, cron }) =>
      client.patch(projectResource, ref, { spec: { job: { cron } } }),
    );
    await this.#followed(cronOf, 600_000);
  }

  /** Occurrences that were counted as missed so far, by reason. */
  missed(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { status } of this.#projects.list()) {
      for (const { reason, count } of status?.job?.missedReasons ?? []) {
        counts[reason] = (counts[reason] ?? 0) + count;
      }
    }
    return counts;
  }

  /** Runs that are in the ledger, of the occurrences between two moments. Times in milliseconds since the epoch. */
  async charged(from: Date, to: Date) {
    const { rows } = await sql<{
      name: string;
      scheduled: Date;
      started: Date;
      finished: Date;
      recorded: Date;
    }>`
      select id as name, scheduled_at as scheduled, started_at as started, finished_at as finished, recorded_at as recorded
      from job_runs where scheduled_at between ${from} and ${to}`.execute(this.#platform.ledger);
    return rows;
  }

  async #followed(cronOf: (index: number) => string, timeoutMs: number): Promise<void> {
    await waitFor("all schedules to be followed", timeoutMs, async () =>
      this.refs.every(({ namespace, name }, index) => {
        const cron = cronOf(index);
        const cronJob = this.#cronJobs.get(namespace, name);
        const project = this.#projects.get(namespace, name);
        return cronJob?.spec?.schedule === cron && project?.status?.job?.schedule === cron;
      }),
    );
  }

  /** Makes as many plain CronJobs with the same pods, due at one minute. */
  async createPlain(at: Date): Promise<void> {
    const { client } = this.#platform;
    await this.removePlain();
    const labels = { [PLAIN]: "true" };
    const template = {
      metadata: { labels },
      spec: {
        restartPolicy: "Never",
        containers: [
          { name: "app", image: "registry.example/team/job:1.0.0", args: scriptArgs({ run: RUN_SECONDS }) },
        ],
      },
    };
    await forEach(this.refs, ({ namespace, name }) =>
      client.create(resources.cronJobs, {
        metadata: { namespace, name: `plain-${name}`, labels },
        spec: {
          schedule: cronAt(at),
          timeZone: "Etc/UTC",
          concurrencyPolicy: "Forbid",
          startingDeadlineSeconds: 120,
          jobTemplate: { metadata: { labels }, spec: { backoffLimit: 0, template } },
        },
      } as KubernetesObject),
    );
  }

  /** When the containers of plain CronJobs have started, as their pods say, in milliseconds since the epoch. */
  async plainStarts(): Promise<number[]> {
    const pods = await this.#platform.client.listAll<Pod>(resources.pods, { labelSelector: PLAIN });
    return pods.flatMap(({ status }) => {
      const { running, terminated } = status?.containerStatuses?.[0]?.state ?? {};
      const startedAt = terminated?.startedAt ?? running?.startedAt;
      return startedAt ? [Date.parse(startedAt)] : [];
    });
  }

  /** Removes the plain CronJobs with all that came of them. */
  async removePlain(): Promise<void> {
    const { client } = this.#platform;
    const cronJobs = await client.listAll(resources.cronJobs, { labelSelector: PLAIN });
    await forEach(cronJobs, (cronJob) => client.delete(resources.cronJobs, refOf(cronJob)));
    await waitFor("plain CronJobs to be deleted", 600_000, async () => {
      const pods = await client.list(resources.pods, { labelSelector: PLAIN, limit: 1 });
      const jobs = await client.list(resources.jobs, { labelSelector: PLAIN, limit: 1 });
      return pods.items.length === 0 && jobs.items.length === 0;
    });
  }
}
