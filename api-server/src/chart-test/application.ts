import { checkGrants } from "./access.ts";
import type { Context } from "./context.ts";
import { type IngressAnswer, isServed } from "./ingress.ts";
import { projectName } from "./names.ts";
import { poll } from "./poll.ts";
import { createProject, deleteProject, untilRunning } from "./projects.ts";

/** An application from an image: it is created, runs, answers through the ingress, and is deleted. */
export async function testApplication(context: Context): Promise<void> {
  const { call, budget, report, settings, suffix } = context;
  const { path, ...application } = settings.application;
  const body = applicationBody(projectName("app", suffix), application);
  const { project_id: id, domain } = await createProject(call, budget, body);
  report(`application ${body.name} is created: ${id}, ${domain}`);
  await checkGrants(context, id);
  await untilRunning(call, budget, id);
  report("the application is running");
  const host = domain ?? "";
  await untilServed(context, host, path);
  await deleteProject(call, budget, id);
  report("the application is deleted: 404");
  await untilUnrouted(context, host, path);
}

async function untilServed(context: Context, host: string, path: string): Promise<void> {
  const { budget, requestIngress, report } = context;
  if (!requestIngress) {
    report("not requested through the ingress: ingress.probeUrl of the values is empty");
    return;
  }
  const what = `http://${host}${path} to answer 2xx at the ingress`;
  const check =
    "ingress.probeUrl, tests.application.port and path of the values, and the ingress controller's log";
  const { status } = await poll<IngressAnswer>(budget, { what, check }, async () => {
    const answer = await requestIngress(host, path);
    return isServed(answer) ? { value: answer } : { waiting: `it answers ${answer.reason}` };
  });
  report(`the application answers ${status} through the ingress`);
}

/** An ingress that answers for any host would have made the request above no proof. */
async function untilUnrouted({ budget, requestIngress, report }: Context, host: string, path: string) {
  if (!requestIngress) {
    return;
  }
  const what = `the ingress to route ${host} no longer`;
  const check = "whether the ingress controller answers for every host (a default backend)";
  await poll(budget, { what, check }, async () => {
    const answer = await requestIngress(host, path);
    return isServed(answer) ? { waiting: `it answers ${answer.reason}` } : { value: undefined };
  });
  report("the ingress routes its domain no longer");
}

/** A legal body of `POST /v1/project` for a public application that everybody reaches. */
export function applicationBody(
  name: string,
  { image, plan, port }: { image: string; plan: string; port: number },
) {
  return {
    name,
    description: "Created by helm test, which deletes it",
    plan,
    payment_mode: "hourly",
    config: {
      type_project: "http",
      exposure: "public",
      image: { url: image, is_public: true },
      port,
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      envs: [],
      network_access: {
        ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }],
        ingress_black_list: [],
      },
    },
  };
}
