import { type JobPlatform, projectResource } from "../../kit/processes/job-platform.ts";

/** Closes a project's schedule, as its deletion does first, or opens it again. */
export async function setClosed(
  { platform, namespace }: { platform: Pick<JobPlatform, "client">; namespace: string },
  project: string,
  closed: boolean,
): Promise<void> {
  const job = { closedAt: closed ? new Date().toISOString() : null };
  await platform.client.patch(projectResource, { namespace, name: project }, { spec: { job } });
}
