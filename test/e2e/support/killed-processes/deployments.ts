import { expect } from "vitest";
import { type Project, readProject, uniqueName } from "../api.ts";
import { eventually } from "../eventually.ts";
import { throughIngress } from "../ingress.ts";
import { stack } from "../stack.ts";
import { traffic } from "../traffic.ts";
import { GROUPS, ROUNDS, type World, within } from "./world.ts";

type Read = Project & { readonly last_deployment?: { readonly pre_deploy?: { readonly status: string } } };

/** Versions, and a group's variables: each is deployed once, after its command ran once, and its event arrives. */
export async function deploys(world: World): Promise<string> {
  const { call, receiver, counter, group, application, changed } = world;
  const name = uniqueName("deploys");
  const { id, domain } = await application("deploys", {
    pre_deploy_command: counter.command(name, 1_000, 0),
    pre_deploy_timeout_seconds: 300,
  });
  await changed("PATCH", `/v1/project/${id}/variable-groups`, { variable_group_ids: [group] });
  const served = traffic(domain, "/", 5);
  for (let round = 1; round <= ROUNDS; round += 1) {
    const image = round % 2 === 1 ? stack.imageHttpV2 : stack.imageHttp;
    await changed("PATCH", `/v1/project/${id}/image`, { image });
    await changed("PATCH", `${GROUPS}/${group}`, { variables: [{ name: "LEVEL", value: String(round) }] });
    await eventually(
      async () => {
        expect((await throughIngress(domain, "/env/LEVEL")).text).toBe(String(round));
        const { last_deployment: last, image: now, status } = (await readProject(call, id)) as Read;
        expect([now?.url, status, last?.status]).toEqual([image, "running", "succeeded"]);
        expect(last?.pre_deploy?.status).toBe("succeeded");
      },
      { within },
    );
  }
  const { sent, failures } = await served.stop();
  expect(failures).toEqual([]);
  const history = await call<readonly { id: string; status: string; pre_deploy?: { status: string } }[]>(
    "GET",
    `/v1/project/${id}/historic/deployments`,
  );
  const deployments = history.body.data ?? [];
  const migrated = deployments.filter(({ pre_deploy }) => pre_deploy?.status === "succeeded");
  // One of a version that another replaced while it ran was stopped, and had begun as well.
  const begun = deployments.filter(({ pre_deploy }) => pre_deploy && pre_deploy.status !== "skipped");
  const { length: reports } = await counter.reports(name);
  expect(reports).toBeGreaterThanOrEqual(migrated.length);
  expect(reports).toBeLessThanOrEqual(begun.length);
  const succeeded = deployments.filter(({ status }) => status === "succeeded").map((one) => one.id);
  await eventually(
    async () => {
      const events = receiver.events.filter(({ data }) => data.project_id === id);
      const arrived = new Map(events.map((event) => [event.id, String(event.data.deployment_id)]));
      // Each deployment once: a message that came twice has the same id.
      expect([...arrived.values()].sort()).toEqual(succeeded.toSorted());
    },
    { within },
  );
  return `${deployments.length} deployments, 0 of ${sent} requests failed`;
}
