import { afterAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { untilServing } from "./support/ingress.ts";
import { traffic } from "./support/traffic.ts";

/** An application that is scaled by its requests, while each of them is answered. */

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

interface Scaled {
  status: string;
  additional_info: { current_instances: number };
}

const untilInstances = (id: string, count: number, within: number) =>
  eventually(
    async () => {
      const { body } = await call<Scaled>("GET", `/v1/project/${id}`);
      expect([body.data?.status, body.data?.additional_info.current_instances]).toEqual(["running", count]);
    },
    { within },
  );

// Shows: docs/applications.md#scaling-by-requests: more instances as soon as they are needed, fewer once they were
test("25 requests a second need three instances for ten each, and lose none of them", {
  timeout: isLong ? 900_000 : 180_000,
}, async () => {
  const autoscaling = {
    enabled: true,
    max_instances: 3,
    cpu_target_percentage: 100,
    requests_per_second_target: 10,
  };
  const { config, ...body } = httpProject(uniqueName("scaled"), { autoscaling });
  const { project_id: id, domain } = await createProject(call, { ...body, config, plan: "premium" });
  made.push(id);
  await untilStatus(call, id, "running");
  await untilServing(domain);
  const running = traffic(domain, "/", 25);
  try {
    await untilInstances(id, 3, 110_000);
    const project = await call("GET", `/v1/project/${id}`);
    expect(project.body).toMatchObject({ data: { autoscaling, request_scaling: { instances: 3 } } });
  } finally {
    const report = await running.stop();
    expect(report.failures).toEqual([]);
  }
  if (isLong) {
    await untilInstances(id, 1, 600_000);
  }
});
