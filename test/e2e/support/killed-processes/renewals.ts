import { expect } from "vitest";
import { untilStatus } from "../api.ts";
import { type Connection, createDatabase, databaseProject, untilReady } from "../databases.ts";
import { eventually } from "../eventually.ts";
import { throughIngress } from "../ingress.ts";
import { traffic } from "../traffic.ts";
import { ROUNDS, type World, within } from "./world.ts";

/** A database's password, renewed while an application that refers to it connects. */
export async function renews(world: World): Promise<string> {
  const { call, made, application } = world;
  const database = await createDatabase(
    call,
    databaseProject("db-premium", { type_project: "postgresql", version: "17" }),
  );
  made.push(database.id);
  await untilReady(database, within);
  const envs = [{ name: "DATABASE_URL", value: `\${project:${database.id}.connection_string}` }];
  const { id, domain } = await application("renews", { envs, instances: 2 });
  const served = traffic(domain, "/connect/DATABASE_URL", 2);
  for (let round = 1; round <= ROUNDS / 2; round += 1) {
    const path = `/v1/project/${database.id}/database`;
    // One that was answered by nothing may be under way, and is refused a second time until it has ended.
    const password = await eventually(
      async () => {
        const renewed = await call<{ connection: Connection }>("POST", `${path}/credentials/renew`);
        expect(renewed.status).toBe(200);
        return renewed.body.data?.connection.password;
      },
      { within },
    );
    await eventually(
      async () => {
        const { text } = await throughIngress(domain, "/env/DATABASE_URL");
        expect(new URL(text).password).toBe(password);
        const { body } = await call("GET", `${path}/connection`);
        expect(body.data).not.toHaveProperty("previous_password_expires_at");
      },
      { within },
    );
    await untilStatus(call, id, "running");
  }
  const { sent, failures } = await served.stop();
  expect(failures).toEqual([]);
  return `${ROUNDS / 2} renewals, 0 of ${sent} requests with a connection failed`;
}
