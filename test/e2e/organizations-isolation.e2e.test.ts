import { beforeAll, describe, expect, test } from "vitest";
import { apiClient, type CreatedProject, httpProject } from "./support/api.ts";
import { cluster, type ExecResult, exec } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf, stack } from "./support/stack.ts";

/** Tries a TCP connection from inside the prober's container; busybox answers immediately or after three seconds. */
const connect = (namespace: string, host: string, port: number): Promise<ExecResult> =>
  exec(namespace, "prober", "prober", ["/bin/sh", "-c", `nc -w 3 ${host} ${port} </dev/null`]);

async function startProber(namespace: string): Promise<void> {
  await cluster.core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name: "prober", labels: { "slipway.dev/project": "prober" } },
      spec: {
        automountServiceAccountToken: false,
        containers: [
          {
            name: "prober",
            image: stack.imageJob,
            command: ["/bin/sh", "-c", "sleep 3600"],
            securityContext: { allowPrivilegeEscalation: false },
          },
        ],
      },
    },
  });
  await eventually(async () => {
    const pod = await cluster.core.readNamespacedPod({ namespace, name: "prober" });
    expect(pod.status?.phase).toBe("Running");
  });
}

describe("a pod of one organization", () => {
  let attacker: string;
  let victimPodIp: string;
  let victimServiceIp: string;
  let nodeIp: string;

  beforeAll(async () => {
    const [first, second] = await Promise.all([
      createOrganization("Isolation A"),
      createOrganization("Isolation B"),
    ]);
    attacker = namespaceOf(first.organization_id);
    const victim = namespaceOf(second.organization_id);
    const call = apiClient(second.api_key);
    const created = await call<CreatedProject>("POST", "/v1/project", httpProject("victim-project"));
    const { project_id: name } = created.body.data as CreatedProject;
    await startProber(attacker);
    await eventually(async () => {
      const read = await call<{ status: string }>("GET", `/v1/project/${name}`);
      expect(read.body.data?.status).toBe("running");
    });
    const labelSelector = `slipway.dev/project=${name}`;
    const pods = await cluster.core.listNamespacedPod({ namespace: victim, labelSelector });
    victimPodIp = pods.items[0]?.status?.podIP ?? "";
    const service = await cluster.core.readNamespacedService({ namespace: victim, name });
    victimServiceIp = service.spec?.clusterIP ?? "";
    const nodes = await cluster.core.listNode();
    nodeIp = nodes.items[0]?.status?.addresses?.find(({ type }) => type === "InternalIP")?.address ?? "";
    // An address that was not found would make every refusal below meaningless.
    for (const address of [victimPodIp, victimServiceIp, nodeIp]) {
      expect(address).toMatch(/^[0-9.]+$/);
    }
  });

  test("reaches a pod of its own organization (the prober works)", async () => {
    const own = await createOwnServer(attacker);
    expect(await connect(attacker, own, 8080)).toMatchObject({ exitCode: 0 });
  });

  test("cannot reach a pod of another organization", async () => {
    expect((await connect(attacker, victimPodIp, 8080)).exitCode).not.toBe(0);
  });

  test("cannot reach a Service of another organization", async () => {
    expect((await connect(attacker, victimServiceIp, 80)).exitCode).not.toBe(0);
  });

  test("cannot reach the apiserver", async () => {
    const service = await cluster.core.readNamespacedService({ namespace: "default", name: "kubernetes" });
    const address = service.spec?.clusterIP ?? "";
    expect(address).toMatch(/^[0-9.]+$/);
    expect((await connect(attacker, address, 443)).exitCode).not.toBe(0);
    expect((await connect(attacker, nodeIp, 6443)).exitCode).not.toBe(0);
  });

  test("cannot reach the node", async () => {
    expect((await connect(attacker, nodeIp, 10250)).exitCode).not.toBe(0);
  });

  test("has no service-account token", async () => {
    const { exitCode } = await exec(attacker, "prober", "prober", [
      "/bin/sh",
      "-c",
      "[ ! -e /var/run/secrets/kubernetes.io/serviceaccount/token ]",
    ]);
    expect(exitCode).toBe(0);
  });
});

describe("the platform's own processes", () => {
  const may = async (process: string, verb: string, namespace: string, name?: string): Promise<boolean> => {
    const user = `system:serviceaccount:slipway-system:${process}`;
    const resourceAttributes = { verb, resource: "secrets", namespace, ...(name ? { name } : {}) };
    const review = await cluster.authorization.createSubjectAccessReview({
      body: { spec: { user, resourceAttributes } },
    });
    return review.status?.allowed === true;
  };

  test.each(["slipway-operator", "slipway-api-server"])(
    "%s writes Secrets in organizations' namespaces alone",
    async (process) => {
      for (const verb of ["create", "patch", "delete"]) {
        expect(await may(process, verb, namespaceOf(stack.organization))).toBe(true);
        expect(await may(process, verb, "kube-system")).toBe(false);
        expect(await may(process, verb, "slipway-system")).toBe(false);
      }
    },
  );

  test("of the platform's own Secrets the operator fills that of the databases' authority alone", async () => {
    const system = "slipway-system";
    const authority = "slipway-database-ca";
    expect(await may("slipway-operator", "patch", system, authority)).toBe(true);
    expect(await may("slipway-operator", "delete", system, authority)).toBe(false);
    expect(await may("slipway-operator", "patch", system, "slipway-token-key")).toBe(false);
    expect(await may("slipway-api-server", "patch", system, authority)).toBe(false);
  });

  test.each(["slipway-operator", "slipway-api-server"])(
    "%s reads no Secret outside of organizations",
    async (process) => {
      for (const namespace of ["kube-system", "slipway-system", "default"]) {
        expect(await may(process, "get", namespace)).toBe(false);
        expect(await may(process, "list", namespace)).toBe(false);
      }
    },
  );
});

/** A second pod of the same organization that listens on 8080; answers its address once it is ready. */
async function createOwnServer(namespace: string): Promise<string> {
  await cluster.core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name: "own-server", labels: { "slipway.dev/project": "own-server" } },
      spec: {
        automountServiceAccountToken: false,
        containers: [
          {
            name: "app",
            image: stack.imageHttp,
            securityContext: { allowPrivilegeEscalation: false },
            readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
          },
        ],
      },
    },
  });
  return eventually(async () => {
    const pod = await cluster.core.readNamespacedPod({ namespace, name: "own-server" });
    expect(pod.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("True");
    return pod.status?.podIP ?? "";
  });
}
