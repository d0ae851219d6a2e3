import { setTimeout as sleep } from "node:timers/promises";
import { ALERTS_MAX } from "@slipway/crds";
import { EVENT_LIMITS } from "@slipway/ledger";
import { httpProject, readProject } from "../../e2e/support/api.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { stack } from "../../e2e/support/stack.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { type Projects, projectsOf } from "../projects.ts";

const WEBHOOKS = "/v1/organization/webhooks";
/** Of the attacker, each with the most rules that a project may have. */
const PROJECTS = 4;
/** While the attacker's rules change in every evaluation. */
const FIRED = "another organization's alert within 75 s";
const FIRED_WITHIN_MS = 75_000;
/** What is recorded of the attacker: its rules, and what its webhook waits for. */
const BOUNDED = "rules and deliveries within the bounds";

/** An application that has never started: rules about its deployment fire as soon as they are evaluated. */
async function failedProject(projects: Projects, name: string): Promise<string> {
  const registry = stack.imageHttp.split("/")[0];
  const image = { url: `${registry}/no-such-image:1`, is_public: true };
  const id = await projects.create(httpProject(name, { exposure: "private", image }));
  await eventually(async () => {
    const { last_deployment: last } = (await readProject(projects.call, id)) as {
      last_deployment?: { status: string };
    };
    if (last?.status !== "failed") {
      throw new Error(`the deployment of ${name} is ${last?.status}`);
    }
  });
  return id;
}

interface Rules {
  alerts: { state: string }[];
}

export const alerts: Attack = {
  name: "alerts",
  about:
    "four clients that give four projects ever other rules, as many as a project may have, which all fire: each evaluation ends as many alerts as it begins, with events for a webhook that takes none; and try another organization's",
  seconds: 90,
  expected: ["200", "400", "404", "409", "429", "503", FIRED, BOUNDED],
  required: ["200", "400 VALIDATION_FAILED", "404 PROJECT_NOT_FOUND", FIRED, BOUNDED],
  async prepare({ url, organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const [victim = "", ...mine] = await Promise.all([
      failedProject(others, "alerts-of-others"),
      ...Array.from({ length: PROJECTS }, (_, index) => failedProject(own, `alerts-${index}-flap`)),
    ]);
    const created = await own.call<{ id: string }>("POST", WEBHOOKS, {
      url: "https://10.255.255.1/",
      event_types: ["alert.firing", "alert.resolved"],
    });
    const webhook = created.body.data?.id ?? "";
    const headers = { "x-api-key": attacker.api_key };
    /** As many rules as there may be, under names that no request before had. */
    const rulesOf = (index: number, count: number) =>
      Array.from({ length: count }, (_, rule) => ({
        name: `r${index}-${rule}`,
        metric: "failed_deployment",
      }));
    /** A rule of the other organization, made once the attacker's are there. */
    const othersFire = async (): Promise<boolean> => {
      await sleep(5_000);
      const path = `/v1/project/${victim}/alerts`;
      const end = performance.now() + FIRED_WITHIN_MS;
      await others.call("PUT", path, { alerts: [{ metric: "failed_deployment" }] });
      while (performance.now() < end) {
        const { body } = await others.call<Rules>("GET", path);
        if (body.data?.alerts[0]?.state === "firing") {
          return true;
        }
        await sleep(1_000);
      }
      return false;
    };
    /** Read once the attacker's own calls are answered again, which its rate limit refuses for a while. */
    const answered = <T>(path: string): Promise<T> =>
      eventually(async () => {
        const { status, body } = await own.call<T>("GET", path);
        if (status !== 200 || body.data === undefined) {
          throw new Error(`GET ${path} was answered ${status} ${body.code ?? ""}`);
        }
        return body.data;
      });
    const isBounded = async (): Promise<boolean> => {
      const rules = await Promise.all(mine.map((id) => answered<Rules>(`/v1/project/${id}/alerts`)));
      type Deliveries = { pagination: { total: number } };
      const { pagination } = await answered<Deliveries>(`${WEBHOOKS}/${webhook}/deliveries`);
      return (
        rules.every(({ alerts }) => alerts.length <= ALERTS_MAX) && pagination.total <= EVENT_LIMITS.perHour
      );
    };
    return {
      run: async (signal) => {
        const fired = othersFire();
        const answers = await calls(
          {
            url,
            concurrency: 4,
            count: 20_000,
            restMs: 20,
            next: (index) => {
              const path = `/v1/project/${mine[index % mine.length]}/alerts`;
              const foreign = `/v1/project/${victim}/alerts`;
              const body = { alerts: rulesOf(index, ALERTS_MAX) };
              const choices = [
                { method: "PUT", path, headers, body },
                { method: "GET", path, headers },
                { method: "PUT", path, headers, body: { alerts: rulesOf(index, ALERTS_MAX + 1) } },
                { method: "PUT", path: foreign, headers, body: { alerts: [] } },
                { method: "GET", path: foreign, headers },
              ] as const;
              return choices[index % choices.length] ?? choices[0];
            },
          },
          signal,
        );
        return {
          ...answers,
          ...((await fired) ? { [FIRED]: 1 } : {}),
          ...((await isBounded()) ? { [BOUNDED]: 1 } : {}),
        };
      },
      clean: async () => {
        await own.call("DELETE", `${WEBHOOKS}/${webhook}`);
        await Promise.all([own.remove(), others.remove()]);
      },
    };
  },
};
