import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startReceiver } from "../../e2e/support/receiver.ts";
import { stack } from "../../e2e/support/stack.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const WEBHOOKS = "/v1/organization/webhooks";
/** A port at which the operators may connect to this machine, whose server never answers. */
const SLOW_PORT = 5_011;

/** In the log of a webhook to a private address. */
const REFUSED = "address_refused in the log";
/** While the attacker's deliveries are held by its silent server. */
const DELIVERED = "another organization's delivery within 20 s";
const DELIVERED_WITHIN_MS = 20_000;

/** The platform's own network in many forms, and what is no URL of a receiver. */
const hostile = [
  "https://127.0.0.1:9090/metrics",
  "https://169.254.169.254/latest/meta-data",
  "https://[::ffff:10.96.0.1]/api",
  "https://[fd00:ec2::254]/",
  "https://kubernetes.default.svc/api",
  "https://slipway-ledger.slipway-system.svc:5432/",
  "http://hooks.example.com/",
  "https://user:password@hooks.example.com/",
  "gopher://hooks.example.com/",
];

export const webhooks: Attack = {
  name: "webhooks",
  about:
    "four clients with webhooks to private addresses and to a receiver that never answers, which they have tested as often as they may, and with another organization's webhook",
  seconds: 20,
  expected: ["200", "201", "202", "400", "404", "409", "429", "503", REFUSED, DELIVERED],
  required: ["202", REFUSED, DELIVERED],
  async prepare({ url, organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const slow = await silentServer(SLOW_PORT);
    const create = async ({ call }: typeof own, address: string) => {
      const body = { url: address, event_types: ["deployment.failed"] };
      const { status, body: answer } = await call<{ id: string }>("POST", WEBHOOKS, body);
      if (status !== 201 || answer.data === undefined) {
        throw new Error(`a webhook to ${address} was not created: ${status}`);
      }
      return answer.data.id;
    };
    type Listed = { deliveries: { id: string; status: string; error?: string }[] };
    const deliveriesOf = async ({ call }: typeof own, id: string) => {
      const { body } = await call<Listed>("GET", `${WEBHOOKS}/${id}/deliveries?limit=50`);
      return body.data?.deliveries ?? [];
    };
    const receiver = await startReceiver();
    const { hostname } = new URL(stack.git.url);
    const mine = await Promise.all([
      create(own, `https://${hostname}:${SLOW_PORT}/`),
      ...hostile.slice(0, 4).map((address) => create(own, address)),
    ]);
    const [silent = "", ...refused] = mine;
    const victim = await create(others, receiver.url);
    /** A test of the other organization's webhook, begun once the attacker has had time to fill its share. */
    const victimDelivery = async (): Promise<boolean> => {
      await sleep(5_000);
      const { body } = await others.call<{ id: string }>("POST", `${WEBHOOKS}/${victim}/test`);
      const end = performance.now() + DELIVERED_WITHIN_MS;
      while (performance.now() < end) {
        const found = (await deliveriesOf(others, victim)).find(({ id }) => id === body.data?.id);
        if (found?.status === "succeeded") {
          return true;
        }
        await sleep(500);
      }
      return false;
    };
    /** What the attacker's own log says; its calls may be limited for a while. */
    const isRefused = async (): Promise<boolean> => {
      for (let tries = 0; tries < 30; tries += 1) {
        const logs = await Promise.all(refused.map((id) => deliveriesOf(own, id)));
        if (logs.flat().some(({ error }) => error === "address_refused")) {
          return true;
        }
        await sleep(1_000);
      }
      return false;
    };
    const headers = { "x-api-key": attacker.api_key };
    return {
      run: async (signal) => {
        const delivered = victimDelivery();
        const answers = await calls(
          {
            url,
            concurrency: 4,
            count: 2_000,
            next: (index) => {
              const id = mine[index % mine.length] ?? "";
              const address = hostile[index % hostile.length] ?? "";
              // The silent server's webhook stays as it is: it is what holds the attacker's share.
              const changed = refused[index % refused.length] ?? "";
              const choices = [
                { method: "POST", path: `${WEBHOOKS}/${index % 2 === 0 ? silent : id}/test`, headers },
                {
                  method: "POST",
                  path: WEBHOOKS,
                  headers,
                  body: { url: address, event_types: ["run.failed"] },
                },
                { method: "PATCH", path: `${WEBHOOKS}/${changed}`, headers, body: { url: address } },
                { method: "GET", path: `${WEBHOOKS}/${id}/deliveries?limit=50`, headers },
                { method: "POST", path: `${WEBHOOKS}/${victim}/rotate-secret`, headers },
                { method: "GET", path: `${WEBHOOKS}/${victim}/deliveries`, headers },
              ] as const;
              return choices[index % choices.length] ?? choices[0];
            },
          },
          signal,
        );
        return {
          ...answers,
          ...((await delivered) ? { [DELIVERED]: 1 } : {}),
          ...((await isRefused()) ? { [REFUSED]: 1 } : {}),
        };
      },
      clean: async () => {
        const { body } = await own.call<{ webhooks: { id: string }[] }>("GET", WEBHOOKS);
        for (const { id } of body.data?.webhooks ?? []) {
          await own.call("DELETE", `${WEBHOOKS}/${id}`);
        }
        await others.call("DELETE", `${WEBHOOKS}/${victim}`);
        await receiver.close();
        await new Promise((resolve) => slow.close(resolve));
      },
    };
  },
};

/** Accepts connections, and says nothing. */
async function silentServer(port: number): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy()).unref();
  }).unref();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "0.0.0.0", resolve));
  return server;
}
