/** What a stolen token of the operator is good for: the chart's roles and policies on a real apiserver, a real token. */

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { annotations, labels, type Project } from "@slipway/crds";
import { Agent, fetch } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { projectResource } from "../../operator/src/resources.ts";
import {
  conditionsOf,
  eventually,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
} from "../../test/kit/operator/harness.ts";
import { exampleProject } from "../../test/kit/operator/projects.ts";
import { run } from "../lib/exec.ts";
import { chartDir, renderChart } from "./render.ts";

/** Of what the chart renders: all that decides who may do what. */
const ACCESS = [
  "Namespace",
  "ServiceAccount",
  "Role",
  "RoleBinding",
  "ClusterRole",
  "ClusterRoleBinding",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
];

const OPERATOR = "system:serviceaccount:slipway-system:slipway-operator";
const ORGANIZATION = "slipway-org-alpha";
const core = (namespace: string, rest: string) => `/api/v1/namespaces/${namespace}/${rest}`;
const apps = (namespace: string, rest: string) => `/apis/apps/v1/namespaces/${namespace}/${rest}`;
const rbac = (rest: string) => `/apis/rbac.authorization.k8s.io/v1/${rest}`;

let cluster: TestCluster;
let operator: TestOperator;
let token: string;
let agent: Agent;

const kubectl = (args: string[], input?: string): Promise<string> =>
  run(cluster.api.binary, ["kubectl", "--kubeconfig", cluster.api.kubeconfig, ...args], { input });

const as = () => {
  const config = loadKubeConfig({ file: cluster.api.kubeconfig });
  config.users = [{ name: "operator", token }];
  config.contexts = config.contexts.map((context) => ({ ...context, user: "operator" }));
  return config;
};

/** Sends one request with the operator's token. Returns the status and, of a refusal, why. */
async function request(
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; message: string }> {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const answer = await fetch(cluster.api.url + path, {
    method,
    dispatcher: agent,
    headers: { authorization: `Bearer ${token}`, "content-type": type, ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const { message = "" } = (await answer.json()) as { message?: string };
  return { status: answer.status, message };
}

const pod = { containers: [{ name: "a", image: "a" }] };
const deployment = {
  metadata: { name: "evil" },
  spec: {
    selector: { matchLabels: { a: "b" } },
    template: { metadata: { labels: { a: "b" } }, spec: pod },
  },
};
const namespace = (name: string, own: Record<string, string>) => ({ metadata: { name, labels: own } });
const organizationLabels = (id: string, level = "baseline") => ({
  [labels.role]: "organization",
  [labels.organization]: id,
  "pod-security.kubernetes.io/enforce": level,
});
const volumeOf = (claimNamespace: string) => ({
  metadata: { name: `of-${claimNamespace}` },
  spec: {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "1Gi" },
    hostPath: { path: "/tmp/victim" },
    persistentVolumeReclaimPolicy: "Delete",
    claimRef: { namespace: claimNamespace, name: "victim" },
  },
});
const retain = { spec: { persistentVolumeReclaimPolicy: "Retain" } };
const binding = (role: { kind: string; name: string }, subject: object) => ({
  metadata: { name: "evil" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", ...role },
  subjects: [subject],
});
const ownRole = { kind: "ClusterRole", name: "slipway-operator-organization" };
const itself = { kind: "ServiceAccount", name: "slipway-operator", namespace: "slipway-system" };
const everybody = { kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: "system:authenticated" };

const start = () =>
  startOperator(cluster, {
    listOrganizations: async () => ["alpha", "old"],
    kubeConfig: as(),
    allowList: "none",
  });

beforeAll(async () => {
  cluster = await startCluster();
  const objects = await renderChart(join(chartDir, "testdata/everything/values.yaml"));
  await kubectl(["create", "namespace", "slipway-system"]);
  // As a release before left it: called guarded, without the operator's binding.
  await cluster.client.create<KubernetesObject>(resources.namespaces, {
    metadata: {
      name: "slipway-org-old",
      labels: organizationLabels("old"),
      annotations: { [annotations.guarded]: "true" },
    },
  });
  const access = objects.filter(({ kind }) => ACCESS.includes(kind));
  await kubectl(["apply", "-f", "-"], access.map((object) => `---\n${stringify(object)}`).join(""));
  for (const where of ["slipway-system", "kube-system"]) {
    const victim = { metadata: { name: "victim", namespace: where }, spec: pod };
    await cluster.client.create<KubernetesObject>(resources.pods, victim);
    await cluster.client.create<KubernetesObject>(resources.secrets, {
      metadata: { name: "victim", namespace: where },
    });
  }
  for (const where of ["kube-system", ORGANIZATION]) {
    await cluster.client.create<KubernetesObject>(resources.persistentVolumes, volumeOf(where));
  }
  await kubectl(["-n", "slipway-system", "create", "deployment", "slipway-operator", "--image=a"]);
  token = (await kubectl(["-n", "slipway-system", "create", "token", "slipway-operator"])).trim();
  const { caData, caFile } = loadKubeConfig({ file: cluster.api.kubeconfig }).getCurrentCluster() ?? {};
  const ca = caData ? Buffer.from(caData, "base64") : readFileSync(caFile ?? "");
  agent = new Agent({ connect: { ca } });
  // The apiserver learns of a policy by a watch of its own.
  await eventually(async () => {
    const tried = namespace("refused", {});
    return (await request("POST", "/api/v1/namespaces?dryRun=All", tried)).status === 403;
  });
  operator = await start();
  await eventually(async () => {
    const live = await cluster.client.getOrUndefined(resources.namespaces, { name: ORGANIZATION });
    return live?.metadata?.annotations?.[annotations.guarded] !== undefined;
  });
});
afterAll(async () => {
  await operator?.stop();
  await agent?.close();
  await cluster?.stop();
});

const stolen: [string, string, string, object?, Record<string, string>?][] = [
  ["a Deployment in kube-system", "POST", apps("kube-system", "deployments"), deployment],
  ["a Deployment in the platform's namespace", "POST", apps("slipway-system", "deployments"), deployment],
  ["a pod in default", "POST", core("default", "pods"), { metadata: { name: "evil" }, spec: pod }],
  [
    "a CronJob in kube-system",
    "POST",
    "/apis/batch/v1/namespaces/kube-system/cronjobs",
    { metadata: { name: "evil" } },
  ],
  [
    "patching its own Deployment",
    "PATCH",
    apps("slipway-system", "deployments/slipway-operator"),
    { spec: { replicas: 3 } },
  ],
  ["deleting a pod of the platform, such as the ledger's", "DELETE", core("slipway-system", "pods/victim")],
  ["deleting a pod of kube-system", "DELETE", core("kube-system", "pods/victim")],
  ["exec into a pod of kube-system", "POST", core("kube-system", "pods/victim/exec?command=sh")],
  ["the log of a pod of kube-system", "GET", core("kube-system", "pods/victim/log")],
  ["every Secret of the cluster", "GET", "/api/v1/secrets"],
  ["every Secret, by a label", "GET", "/api/v1/secrets?labelSelector=slipway.dev%2Fproject"],
  ["a watch of every Secret", "GET", "/api/v1/secrets?watch=true&timeoutSeconds=1"],
  ["the Secrets of the platform", "GET", core("slipway-system", "secrets")],
  ["one Secret of the platform", "GET", core("slipway-system", "secrets/victim")],
  ["one Secret of kube-system", "GET", core("kube-system", "secrets/victim")],
  ["a Secret in kube-system", "POST", core("kube-system", "secrets"), { metadata: { name: "evil" } }],
  ["a ConfigMap in kube-system", "POST", core("kube-system", "configmaps"), { metadata: { name: "evil" } }],
  [
    "a Service in kube-system",
    "POST",
    core("kube-system", "services"),
    { metadata: { name: "evil" }, spec: { ports: [{ port: 80 }] } },
  ],
  ["an Ingress elsewhere", "POST", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", deployment],
  [
    "deleting a network policy of the platform",
    "DELETE",
    "/apis/networking.k8s.io/v1/namespaces/slipway-system/networkpolicies/slipway-ledger",
  ],
  [
    "an Event in kube-system",
    "POST",
    "/apis/events.k8s.io/v1/namespaces/kube-system/events",
    { metadata: { name: "evil" } },
  ],
  [
    "its own role bound in kube-system",
    "POST",
    rbac("namespaces/kube-system/rolebindings"),
    binding(ownRole, itself),
  ],
  [
    "its own role bound in the platform's namespace",
    "POST",
    rbac("namespaces/slipway-system/rolebindings"),
    binding(ownRole, itself),
  ],
  [
    "its own role bound in the namespace of builds",
    "POST",
    rbac("namespaces/slipway-builds/rolebindings"),
    binding(ownRole, itself),
  ],
  [
    "deleting a binding of the platform",
    "DELETE",
    rbac("namespaces/slipway-system/rolebindings/slipway-operator"),
  ],
  [
    "an organization's role bound to everybody",
    "POST",
    rbac(`namespaces/${ORGANIZATION}/rolebindings`),
    binding(ownRole, everybody),
  ],
  [
    "cluster-admin bound in an organization's namespace",
    "POST",
    rbac(`namespaces/${ORGANIZATION}/rolebindings`),
    binding({ kind: "ClusterRole", name: "cluster-admin" }, itself),
  ],
  ["a ClusterRoleBinding of its own role", "POST", rbac("clusterrolebindings"), binding(ownRole, itself)],
  [
    "a ClusterRole",
    "POST",
    rbac("clusterroles"),
    { metadata: { name: "evil" }, rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] },
  ],
  [
    "more in its own ClusterRole",
    "PATCH",
    rbac("clusterroles/slipway-operator"),
    { rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] },
  ],
  [
    "a Role that has more than it has itself",
    "POST",
    rbac(`namespaces/${ORGANIZATION}/roles`),
    { metadata: { name: "evil" }, rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] },
  ],
  ["a namespace of no organization", "POST", "/api/v1/namespaces", namespace("evil", {})],
  [
    "a namespace that only has an organization's labels",
    "POST",
    "/api/v1/namespaces",
    namespace("evil", organizationLabels("evil")),
  ],
  [
    "an organization's namespace without its labels",
    "POST",
    "/api/v1/namespaces",
    namespace("slipway-org-evil", {}),
  ],
  [
    "an organization's namespace in which everything is allowed",
    "POST",
    "/api/v1/namespaces",
    namespace("slipway-org-evil", organizationLabels("evil", "privileged")),
  ],
  [
    "kube-system as an organization's namespace",
    "PATCH",
    "/api/v1/namespaces/kube-system",
    { metadata: { labels: organizationLabels("kube-system") } },
  ],
  [
    "everything allowed in an organization's namespace",
    "PATCH",
    `/api/v1/namespaces/${ORGANIZATION}`,
    { metadata: { labels: { "pod-security.kubernetes.io/enforce": "privileged" } } },
  ],
  [
    "an old Pod Security Standard in an organization's namespace",
    "PATCH",
    `/api/v1/namespaces/${ORGANIZATION}`,
    { metadata: { labels: { "pod-security.kubernetes.io/enforce-version": "v1.0" } } },
  ],
  ["deleting a namespace", "DELETE", `/api/v1/namespaces/${ORGANIZATION}`],
  [
    "a token of the API server",
    "POST",
    core("slipway-system", "serviceaccounts/slipway-api-server/token"),
    {},
  ],
  ["a token of kube-system", "POST", core("kube-system", "serviceaccounts/default/token"), {}],
  [
    "acting as somebody else",
    "GET",
    "/api/v1/nodes",
    undefined,
    { "impersonate-user": "system:admin", "impersonate-group": "system:masters" },
  ],
  ["a volume of kube-system", "PATCH", "/api/v1/persistentvolumes/of-kube-system", retain],
  [
    "an organization's volume for a claim of kube-system",
    "PATCH",
    `/api/v1/persistentvolumes/of-${ORGANIZATION}`,
    { spec: { claimRef: { namespace: "kube-system" } } },
  ],
  ["deleting a volume", "DELETE", `/api/v1/persistentvolumes/of-${ORGANIZATION}`],
  ["every volume", "GET", "/api/v1/persistentvolumes"],
  ["a node's taint", "PATCH", "/api/v1/nodes/any", { spec: { unschedulable: true } }],
  [
    "the policy that confines it",
    "DELETE",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/slipway-operator-rolebindings",
  ],
  [
    "a custom resource definition",
    "DELETE",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/projects.slipway.dev",
  ],
];

describe("a stolen token of the operator", () => {
  test.each(stolen)("is refused %s", async (_, method, path, body, headers) => {
    const { status, message } = await request(method, path, body, headers);
    expect(message).toMatch(/forbidden|cannot/);
    expect(status).toBe(403);
  });
});

describe("the operator itself", () => {
  const exists = (resource: typeof resources.pods, name: string, where = ORGANIZATION) =>
    eventually(() => cluster.client.getOrUndefined(resource, { namespace: where, name }));

  test("retains an organization's volume", async () => {
    const path = `/api/v1/persistentvolumes/of-${ORGANIZATION}?dryRun=All`;
    expect(await request("PATCH", path, retain)).toMatchObject({ status: 200 });
  });

  test("takes up a namespace of an earlier release: its binding first, then the rest", async () => {
    for (const name of ["slipway-operator", "slipway-api-server"]) {
      await exists(resources.roleBindings, name, "slipway-org-old");
    }
    await exists(resources.resourceQuotas, "slipway-quota", "slipway-org-old");
    await exists(resources.networkPolicies, "slipway-egress", "slipway-org-old");
  });

  test("carries out a project, adopts its Secrets and takes all away again", async () => {
    const name = "p0000000000000000001";
    const secret = `${name}-env-0123456789abcdef`;
    const own = { [labels.project]: name, [labels.managedBy]: "slipway" };
    await cluster.client.create<KubernetesObject>(resources.secrets, {
      metadata: { namespace: ORGANIZATION, name: secret, labels: own },
    });
    const project = exampleProject({ name, namespace: ORGANIZATION });
    await cluster.client.create<Project>(projectResource, {
      ...project,
      spec: { ...project.spec, envsFrom: [{ name: secret }] },
    });
    const made = [resources.deployments, resources.services, resources.networkPolicies];
    for (const resource of made) {
      await exists(resource, name);
    }
    await eventually(async () => {
      const live = await cluster.client.get(resources.secrets, { namespace: ORGANIZATION, name: secret });
      return live.metadata?.ownerReferences?.[0]?.name === name;
    });
    await cluster.client.delete(projectResource, { namespace: ORGANIZATION, name });
    await eventually(
      async () =>
        (await cluster.client.getOrUndefined(projectResource, { namespace: ORGANIZATION, name })) ===
        undefined,
    );
  });

  test("refuses a project outside of organizations, and lets it be deleted", async () => {
    const outside = { namespace: "default", name: "outside" };
    await cluster.client.create<Project>(projectResource, exampleProject(outside));
    await eventually(async () =>
      (await conditionsOf(cluster.client, outside)).includes("Accepted=False/NotInOrganizationNamespace"),
    );
    await cluster.client.delete(projectResource, outside);
    await eventually(
      async () => (await cluster.client.getOrUndefined(projectResource, outside)) === undefined,
    );
  });

  test("starts again, where organizations have no Secret too, and restores what was deleted meanwhile", async () => {
    await operator.stop();
    const policy = { namespace: "slipway-org-old", name: "slipway-egress" };
    await cluster.client.delete(resources.networkPolicies, policy);
    operator = await start();
    await exists(resources.networkPolicies, policy.name, policy.namespace);
  });

  test("writes nothing for which it has no right", async () => {
    const refused = (await readFile(cluster.api.auditLog, "utf8"))
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Entry)
      .filter(
        ({ userAgent, responseStatus }) =>
          userAgent === "slipway.dev/operator" && responseStatus?.code === 403,
      )
      .filter(({ user }) => user.username === OPERATOR)
      // Until its binding in a new namespace is in effect.
      .filter(({ requestURI }) => !/(networkpolicies|limitranges|resourcequotas)/.test(requestURI));
    expect(refused).toEqual([]);
  });
});

interface Entry {
  userAgent?: string;
  user: { username: string };
  requestURI: string;
  responseStatus?: { code: number };
}
