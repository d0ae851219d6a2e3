import { createServer, type Server } from "node:net";
import { stack } from "../../e2e/support/stack.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const WEBHOOKS = "/v1/organization/webhooks";
/** A port at which the operators may connect to this machine, whose server never answers. */
const SLOW_PORT = 5_011;

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
  expected: ["200", "201", "202", "400", "404", "409", "429", "503"],
  required: ["202"],
  async prepare({ url, organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const slow = await silentServer(SLOW_PORT);
    const create = async ({ call }: typeof own, receiver: string) => {
      const body = { url: receiver, event_types: ["deployment.failed"] };
      const { body: answer } = await call<{ id: string }>("POST", WEBHOOKS, body);
      return answer.data?.id ?? "";
    };
    const { hostname } = new URL(stack.git.url);
    const mine = await Promise.all([
      create(own, `https://${hostname}:${SLOW_PORT}/`),
      ...hostile.slice(0, 4).map((receiver) => create(own, receiver)),
    ]);
    const victim = await create(others, "https://hooks.example.com/");
    const headers = { "x-api-key": attacker.api_key };
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 4,
            count: 2_000,
            next: (index) => {
              const id = mine[index % mine.length] ?? "";
              const receiver = hostile[index % hostile.length] ?? "";
              const choices = [
                { method: "POST", path: `${WEBHOOKS}/${id}/test`, headers },
                {
                  method: "POST",
                  path: WEBHOOKS,
                  headers,
                  body: { url: receiver, event_types: ["run.failed"] },
                },
                { method: "PATCH", path: `${WEBHOOKS}/${id}`, headers, body: { url: receiver } },
                { method: "GET", path: `${WEBHOOKS}/${id}/deliveries?limit=50`, headers },
                { method: "POST", path: `${WEBHOOKS}/${victim}/rotate-secret`, headers },
                { method: "GET", path: `${WEBHOOKS}/${victim}/deliveries`, headers },
              ] as const;
              return choices[index % choices.length] ?? choices[0];
            },
          },
          signal,
        ),
      clean: async () => {
        const { body } = await own.call<{ webhooks: { id: string }[] }>("GET", WEBHOOKS);
        for (const { id } of body.data?.webhooks ?? []) {
          await own.call("DELETE", `${WEBHOOKS}/${id}`);
        }
        await others.call("DELETE", `${WEBHOOKS}/${victim}`);
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
