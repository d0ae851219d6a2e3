import { expect } from "vitest";
import { eventually } from "../eventually.ts";
import { traffic } from "../traffic.ts";
import { type World, within } from "./world.ts";

/** An application that has as many instances as its requests need, however often what counts and what scales is killed. */
export async function scales({ call, application }: World): Promise<string> {
  const autoscaling = {
    ...{ enabled: true, max_instances: 3, cpu_target_percentage: 100 },
    requests_per_second_target: 5,
  };
  const { id, domain } = await application("scales", { autoscaling }, "premium");
  const running = traffic(domain, "/", 12);
  try {
    await eventually(
      async () => {
        const path = `/v1/project/${id}`;
        const { body } = await call<{ additional_info: { current_instances: number } }>("GET", path);
        expect(body.data?.additional_info.current_instances).toBe(3);
      },
      { within },
    );
  } finally {
    const { failures } = await running.stop();
    expect(failures).toEqual([]);
  }
  return "3 instances, 0 requests failed";
}
