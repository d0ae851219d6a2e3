import type { Answer, Call } from "./client.ts";
import { describe, refusal } from "./failure.ts";
import { type Budget, poll, send } from "./poll.ts";

/** A project, as far as the test reads it. */
export interface Project {
  status: string;
  domain?: string;
  last_deployment?: { status: string; message?: string };
}

interface Run {
  id: string;
  status: string;
}

/** The API's own answer: 404 is what an ingress says, too, while the API is away. */
const isNotFound = ({ status, code }: Answer): boolean => status === 404 && code === "PROJECT_NOT_FOUND";

/** How to find a project in the cluster. */
const inCluster = (id: string): string =>
  `kubectl get projects,pods -A | grep ${id}, and kubectl describe of both`;

/** Creates a project; the name is its idempotency key, so that a request whose answer was lost can be sent again. */
export async function createProject(
  call: Call,
  budget: Budget,
  body: { name: string },
): Promise<{ project_id: string; domain?: string }> {
  const options = { body, idempotencyKey: body.name };
  return send(budget, `the creation of ${body.name}`, 201, () => call("POST", "/v1/project", options));
}

/** Waits until the project's status is `running`. @throws TestFailure that quotes what the project says of its deployment */
export function untilRunning(call: Call, budget: Budget, id: string): Promise<Project> {
  const what = `project ${id} to be running`;
  return poll<Project>(budget, { what, check: inCluster(id) }, async () => {
    const read = await call<Project>("GET", `/v1/project/${id}`);
    if (read.status !== 200 || !read.data) {
      return { waiting: describe(read) };
    }
    const { status, last_deployment: deployment } = read.data;
    const reason = deployment?.message ? ` (${deployment.message})` : "";
    return status === "running" ? { value: read.data } : { waiting: `its status is ${status}${reason}` };
  });
}

/**
 * Deletes a project and waits until reading it answers 404. A run of a job that is still active is cancelled.
 * @throws TestFailure when it is still there at the deadline
 */
export async function deleteProject(call: Call, budget: Budget, id: string): Promise<void> {
  const path = `/v1/project/${id}`;
  const what = `project ${id} to be deleted`;
  let accepted = false;
  await poll(budget, { what, check: inCluster(id) }, async () => {
    if (!accepted) {
      const deleted = await call("DELETE", path);
      accepted =
        [200, 202].includes(deleted.status) ||
        deleted.code === "PROJECT_ALREADY_DELETED" ||
        isNotFound(deleted);
      if (deleted.status === 401 || deleted.status === 403) {
        throw refusal(`DELETE ${path}`, deleted);
      }
      if (!accepted) {
        if (deleted.code === "JOB_RUNS_PENDING") {
          await cancelRuns(call, id);
        }
        return { waiting: describe(deleted) };
      }
    }
    const read = await call("GET", path);
    return isNotFound(read) ? { value: undefined } : { waiting: `GET answers ${describe(read)}` };
  });
}

async function cancelRuns(call: Call, id: string): Promise<void> {
  const path = `/v1/project/${id}/job-runs`;
  const running = await call<{ runs: Run[] }>("GET", `${path}?status=running`);
  for (const run of running.data?.runs ?? []) {
    await call("POST", `${path}/${run.id}/cancel`);
  }
}

/** The projects whose names contain a text: those of the first page, which is 50. */
export async function findProjects(
  call: Call,
  budget: Budget,
  text: string,
): Promise<{ id: string; name: string }[]> {
  const path = `/v1/project?limit=50&search=${encodeURIComponent(text)}`;
  const list = await send(budget, "the list of projects", 200, () =>
    call<{ projects: { id: string; name: string }[] }>("GET", path),
  );
  return list.projects.filter(({ name }) => name.includes(text));
}
