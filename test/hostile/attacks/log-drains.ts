import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const DRAINS = "/v1/organization/log-drains";

/** Receivers inside: of the platform, the cluster and the cloud, and what is no address. */
const inside = [
  "https://127.0.0.1:6443",
  "https://10.96.0.1",
  "https://169.254.169.254",
  "https://kubernetes.default.svc",
  "https://slipway-api-server.slipway-system.svc:8080",
];

export const logDrains: Attack = {
  name: "log-drains",
  about:
    "four clients who send logs to addresses inside, create more drains than an organization may have, and read, change and delete another organization's",
  seconds: 8,
  // Those to addresses inside are created, and connect to none of them. A platform that keeps no logs has no drains.
  expected: ["200", "201", "400", "404", "409", "413", "429", "503"],
  async prepare({ url, organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const body = { name: "Victim", otlp_http: { endpoint: "https://otlp.example.com" } };
    const { body: answer } = await others.call<{ id: string }>("POST", DRAINS, body);
    const victim = answer.data?.id ?? "lnone";
    const headers = { "x-api-key": attacker.api_key };
    const long = Array.from({ length: 16 }, (_, index) => ({ name: `X-${index}`, value: "x".repeat(8_000) }));
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 4,
            count: 2_000,
            next: (index) => {
              const endpoint = inside[index % inside.length];
              const path = `${DRAINS}/${victim}`;
              switch (index % 5) {
                case 0:
                  return {
                    method: "POST",
                    path: DRAINS,
                    headers,
                    body: { name: "x", otlp_http: { endpoint } },
                  };
                case 1:
                  return { method: "POST", path: DRAINS, headers, body: { ...body, headers: long } };
                case 2:
                  return { method: "PATCH", path, headers, body: { otlp_http: { endpoint } } };
                case 3:
                  return { method: "DELETE", path, headers };
                default:
                  return { method: "GET", path, headers };
              }
            },
          },
          signal,
        ),
      clean: async () => {
        const listed = await own.call<{ log_drains: { id: string }[] }>("GET", DRAINS);
        for (const { id } of listed.body.data?.log_drains ?? []) {
          await own.call("DELETE", `${DRAINS}/${id}`);
        }
        await others.call("DELETE", `${DRAINS}/${victim}`);
        await own.remove();
        await others.remove();
      },
    };
  },
};
