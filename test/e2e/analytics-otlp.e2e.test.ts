import { afterAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import {
  collectorNamespace,
  collectorPod,
  networkAnalytics,
  type RequestEvent,
} from "./support/network-analytics.ts";
import { namespaceOf, stack } from "./support/stack.ts";

const call = apiClient();
const ids: string[] = [];
const pods: { namespace: string; name: string }[] = [];
afterAll(async () => {
  for (const pod of pods) {
    await cluster.core.deleteNamespacedPod(pod).catch(() => undefined);
  }
  await deleteProjects(call, ids);
});

/** Posts a body to the collector's Service from a pod of a namespace. @returns what became of it: a status, or an error */
async function postFrom(namespace: string, body: string): Promise<string> {
  const url = `http://slipway-collector.${collectorNamespace}.svc:4318/v1/logs`;
  const program = `fetch(process.argv[1], { method: "POST", headers: { "content-type": "application/json" },
    body: process.argv[2], signal: AbortSignal.timeout(5000) })
    .then(({ status }) => console.log(status), ({ name }) => console.log(name))`;
  const collector = await cluster.core.readNamespacedPod({
    namespace: collectorNamespace,
    name: await collectorPod(),
  });
  const name = uniqueName("gateway");
  pods.push({ namespace, name });
  await cluster.core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name },
      spec: {
        restartPolicy: "Never",
        automountServiceAccountToken: false,
        containers: [
          {
            name: "gateway",
            // The platform's own: it has Node.
            image: collector.spec?.containers[0]?.image,
            args: ["node", "-e", program, url, body],
            securityContext: {
              runAsNonRoot: true,
              runAsUser: 65532,
              allowPrivilegeEscalation: false,
              capabilities: { drop: ["ALL"] },
              seccompProfile: { type: "RuntimeDefault" },
            },
          },
        ],
      },
    },
  });
  await eventually(
    async () => {
      const { status } = await cluster.core.readNamespacedPod({ namespace, name });
      expect(status?.phase).toBe("Succeeded");
    },
    { within: 120_000 },
  );
  return (await cluster.core.readNamespacedPodLog({ namespace, name })).trim();
}

/** What a gateway that is not Traefik says of requests to a project, by OpenTelemetry's semantic conventions. */
function requests(project: string, count: number, end: number): string {
  const text = (key: string, stringValue: string) => ({ key, value: { stringValue } });
  const logRecords = Array.from({ length: count }, (_, index) => ({
    timeUnixNano: `${end - index * 10}000000`,
    attributes: [
      text("http.request.method", "GET"),
      text("url.path", `/gateway/${index + 1}`),
      text("user_agent.original", "from elsewhere"),
      text("client.address", "203.0.113.9"),
      text("k8s.namespace.name", namespaceOf(stack.organization)),
      text("k8s.ingress.name", project),
      { key: "http.response.status_code", value: { intValue: "200" } },
      { key: "http.response.body.size", value: { intValue: String(index + 1) } },
      { key: "http.server.request.duration", value: { doubleValue: 0.005 } },
    ],
  }));
  return JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] });
}

// Shows: docs/analytics.md#other-ingresses: pods of another ingress may send, other pods may not
test("requests that another ingress reports are counted once, and other pods cannot report any", async () => {
  const { project_id: id } = await createProject(call, httpProject(uniqueName("otlp")));
  ids.push(id);
  await untilStatus(call, id, "running");
  const now = Date.now();
  const network = networkAnalytics(call, id, new Date(now - 60_000));
  const body = requests(id, 25, now - 1_000);
  // Sent again, as by an exporter that received no answer.
  expect(await postFrom("slipway-ingress", body)).toBe("200");
  expect(await postFrom("slipway-ingress", body)).toBe("200");
  await network.untilCounted(25);
  // Whose requests were none: the NetworkPolicy lets nobody in but the ingress's namespace.
  expect(await postFrom("default", requests(id, 3, now))).toMatch(/Error/);
  const events = await network.all<RequestEvent>("request-events");
  expect(events.map(({ path }) => path)).toEqual(
    Array.from({ length: 25 }, (_, index) => `/gateway/${index + 1}`),
  );
  expect(events[0]).toMatchObject({
    ...{ status_code: "200", route: "/gateway/:number", user_agent: "from elsewhere" },
    ...{ source_ip: "203.0.113.9", bytes_sent: 1, latency_ms: 5 },
  });
  expect((await network.summary()).summary).toMatchObject({ requests: 25, bytes_sent: 325 });
}, 300_000);
