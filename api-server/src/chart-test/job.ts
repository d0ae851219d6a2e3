import type { Context } from "./context.ts";
import { describe, TestFailure } from "./failure.ts";
import { projectName } from "./names.ts";
import { poll, send } from "./poll.ts";
import { createProject, deleteProject, untilRunning } from "./projects.ts";

/** The next one is years away: a job that a killed test leaves behind does not run. */
const HARDLY_EVER = "0 0 29 2 *";

interface Run {
  id: string;
  status: string;
  duration_seconds?: number;
}

/** A job: it is created, a run that is requested succeeds, and it is deleted once that is charged. */
export async function testJob({ call, budget, report, settings, suffix }: Context): Promise<void> {
  const body = jobBody(projectName("job", suffix), settings.job);
  const { project_id: id } = await createProject(call, budget, body);
  report(`job ${body.name} is created: ${id}`);
  await untilRunning(call, budget, id);
  const path = `/v1/project/${id}/job-runs`;
  const { run } = await send(budget, `a run of ${body.name}`, 202, () =>
    call<{ run: Run }>("POST", path, { idempotencyKey: body.name }),
  );
  report(`run ${run.id} is requested`);
  const check = `that the image has /bin/sh and can be pulled: kubectl get pods -A | grep ${id}, and kubectl describe of it`;
  const ended = await poll<Run>(budget, { what: `run ${run.id} to end`, check }, async () => {
    const list = await call<{ runs: Run[] }>("GET", path);
    const found = list.data?.runs.find((one) => one.id === run.id);
    if (!found) {
      return { waiting: list.status === 200 ? "its container has not started" : describe(list) };
    }
    return found.status === "running" ? { waiting: "it is running" } : { value: found };
  });
  if (ended.status !== "succeeded") {
    throw new TestFailure(`run ${run.id} is ${ended.status}, not succeeded`, check);
  }
  report(`the run has succeeded after ${ended.duration_seconds} s`);
  await deleteProject(call, budget, id);
  report("the job is deleted: 404");
}

/** A legal body of `POST /v1/project` for a job that ends by itself. */
export function jobBody(name: string, { image, plan }: { image: string; plan: string }) {
  return {
    name,
    description: "Created by helm test, which deletes it",
    plan,
    payment_mode: "per_minute",
    config: {
      type_project: "job",
      image: { url: image, is_public: true },
      envs: [],
      storage: { persistent: false, capacity: 1 },
      job: { cron: HARDLY_EVER, command: ["/bin/sh", "-c"], args: ["echo slipway"] },
    },
  };
}
