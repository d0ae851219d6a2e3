import { expect } from "vitest";
import { eventually } from "../eventually.ts";
import { throughIngress } from "../ingress.ts";
import { mailsOf } from "../mail.ts";
import { type World, within } from "./world.ts";

/** An alert that fires and ends: one event each. */
export async function alerts(world: World): Promise<string> {
  const { call, receiver, mails, application, changed } = world;
  const { id, domain } = await application("alerts");
  const rules = [{ metric: "error_rate", threshold: 50, for_seconds: 120 }];
  await changed("PUT", `/v1/project/${id}/alerts`, { alerts: rules });
  const until = (path: string, state: string) =>
    eventually(
      async () => {
        for (let index = 0; index < 10; index += 1) {
          await throughIngress(domain, path);
        }
        const { body } = await call<{ alerts: { state: string }[] }>("GET", `/v1/project/${id}/alerts`);
        expect(body.data?.alerts[0]?.state).toBe(state);
      },
      { within, every: 1_000 },
    );
  await until("/status/500", "firing");
  await until("/status/200", "ok");
  await eventually(
    async () => {
      const events = receiver.events.filter(({ data }) => data.project_id === id);
      const types = new Map(
        events.filter(({ type }) => type.startsWith("alert")).map((one) => [one.id, one.type]),
      );
      expect([...types.values()].sort()).toEqual(["alert.firing", "alert.resolved"]);
      for (const event of types.keys()) {
        expect(mailsOf(mails, event), `mails of ${event}`).not.toEqual([]);
      }
    },
    { within },
  );
  return "an alert fired once and ended once, by webhook and by e-mail";
}
