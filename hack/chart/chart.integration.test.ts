import { createPrivateKey } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { KubeClient, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { deletedVolumesRetentionHours, parseCatalog } from "@slipway/crds";
import { systemClock } from "@slipway/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { Authority } from "../../operator/src/databases/tls/authority.ts";
import { invoiceTerms } from "../../operator/src/invoices/settings.ts";
import { startApiserver, type TestApiserver } from "../cluster/apiserver.ts";
import { run } from "../lib/exec.ts";
import { chartDir, helm, type Rendered, renderChart } from "./render.ts";

interface WorkloadSpec {
  template: { spec: { serviceAccountName?: string; volumes?: unknown[] } };
  volumeClaimTemplates?: { metadata: { name: string } }[];
}

const testdata = join(chartDir, "testdata");
const cases = readdirSync(testdata);
const valuesOf = (name: string): string => join(testdata, name, "values.yaml");

const renderings = new Map<string, Promise<Rendered[]>>();

/** A case rendered: once, as it takes seconds. Nothing changes what it gives. */
function renderedCase(name: string): Promise<Rendered[]> {
  const rendering = renderings.get(name) ?? renderChart(valuesOf(name));
  renderings.set(name, rendering);
  return rendering;
}

interface ParsedCatalog {
  databasePlans: { resources: { requests: object; limits: object } }[];
  storagePlans: { ephemeralRequest?: string }[];
}

/** The catalog with databases that request their limits, and no smaller request of a node's disk. */
function reservingWhatIsSold(catalog: ParsedCatalog): ParsedCatalog {
  const databasePlans = catalog.databasePlans.map(({ resources, ...plan }) => ({
    ...plan,
    resources: { requests: resources.limits, limits: resources.limits },
  }));
  const storagePlans = catalog.storagePlans.map(({ ephemeralRequest: _, ...plan }) => plan);
  return { ...catalog, databasePlans, storagePlans };
}

/** A rendering without what differs each time, and without the generated files, which have tests of their own. */
function settled(objects: Rendered[]): Rendered[] {
  const catalog = parse(readFileSync(join(chartDir, "files/catalog.yaml"), "utf8")) as ParsedCatalog;
  const sold = reservingWhatIsSold(catalog);
  return objects
    .filter((object) => object.kind !== "CustomResourceDefinition")
    .map((object) => {
      if (object.metadata.name === "slipway-catalog" && object.data?.["catalog.yaml"]) {
        const rendered = parse(object.data["catalog.yaml"]) as unknown;
        if (isDeepStrictEqual(rendered, catalog)) {
          return { ...object, data: { "catalog.yaml": "(files/catalog.yaml)" } };
        }
        if (isDeepStrictEqual(rendered, sold)) {
          return { ...object, data: { "catalog.yaml": "(files/catalog.yaml, reserving what is sold)" } };
        }
      }
      if (object.kind === "Role" || object.kind === "ClusterRole") {
        return { ...object, rules: "(files/rbac)" };
      }
      if (object.kind === "Secret" && object.data) {
        const data = Object.fromEntries(Object.keys(object.data).map((key) => [key, "(made)"]));
        return { ...object, data };
      }
      return object;
    })
    .sort((a, b) => `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`));
}

interface RenderedContainer {
  name: string;
  args?: string[];
  env?: { name: string; value?: string }[];
  resources?: { limits?: { memory?: string } };
}

/** Containers of a workload's pods, those that only prepare included. */
function containersOf(object: Rendered): RenderedContainer[] {
  interface Workload {
    template?: { spec: { containers: RenderedContainer[]; initContainers?: RenderedContainer[] } };
    jobTemplate?: { spec: Workload };
  }
  const spec = object.spec as Workload | undefined;
  const { containers = [], initContainers = [] } = (spec?.jobTemplate?.spec ?? spec)?.template?.spec ?? {};
  return [...initContainers, ...containers];
}

/** MiB of a quantity in Mi or Gi. */
const mebibytes = (quantity: string): number =>
  Number.parseInt(quantity, 10) * (quantity.endsWith("Gi") ? 1024 : 1);

describe("rendering", () => {
  // Shows: docs/builds.md#bounds: what builds and caches take of the cluster | `builds.quota`, a
  test.each(cases)("%s is what its golden file says", async (name) => {
    const got = settled(await renderedCase(name));
    const want = join(testdata, name, "want.yaml");
    if (process.env.UPDATE_GOLDEN === "1") {
      writeFileSync(want, got.map((object) => `---\n${stringify(object, { lineWidth: 0 })}`).join(""));
    }
    const golden = parseAllDocuments(readFileSync(want, "utf8")).map(
      (document) => document.toJS() as unknown,
    );
    expect(got).toEqual(golden);
  });

  test.each(cases)(
    "%s: V8's heap ends well below the memory limit of every container that runs Node",
    async (name) => {
      const containers = (await renderedCase(name)).flatMap(containersOf);
      const serving = containers.filter(({ args }) => args?.[0] === "node" && args[1] !== "-e");
      expect(serving.length).toBeGreaterThan(3);
      for (const { name, env, resources } of serving.filter((one) => one.name !== "api-server")) {
        const options = env?.find((variable) => variable.name === "NODE_OPTIONS")?.value ?? "";
        const heap = Number(/--max-old-space-size=([0-9]+)/.exec(options)?.[1]);
        const limit = mebibytes(resources?.limits?.memory ?? "");
        expect([name, heap / limit > 0.55 && heap / limit <= 0.6]).toEqual([name, true]);
      }
    },
  );

  test("plans of the default catalog retain volumes of deleted projects for the hours that values name", async () => {
    const catalogOf = async (sets: string[]) => {
      const objects = await renderChart(valuesOf("default"), sets);
      const { data } = objects.find(({ metadata }) => metadata.name === "slipway-catalog") ?? {};
      return parseCatalog(data?.["catalog.yaml"] ?? "");
    };
    const catalog = await catalogOf(["catalogRetainDeletedVolumesHours.premium=24", "catalogRequests=small"]);
    expect(deletedVolumesRetentionHours(catalog, "premium")).toBe(24);
    expect(deletedVolumesRetentionHours(catalog, "db-premium")).toBe(0);
    const set = ["catalogRetainDeletedVolumesHours.job-basic=24"];
    await expect(catalogOf(set)).rejects.toThrow("job-basic is no plan of an application or a database");
  });

  // Shows: docs/webhooks.md#delivery: a port | is 443
  test("the operator reaches receivers of webhooks as values say: by default over port 443, and none where there are no ranges", async () => {
    const rules = async (set: string) => {
      const objects = await renderChart(valuesOf("default"), [set]);
      const policy = objects.find(
        ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "slipway-operator",
      );
      const { egress } = (policy as Rendered).spec as {
        egress: { to: { ipBlock?: { cidr: string } }[]; ports?: object[] }[];
      };
      return egress.filter(({ to }) => to.some(({ ipBlock }) => ipBlock?.cidr === "0.0.0.0/0"));
    };
    // Values of 0.2.0, which an upgrade may reuse, have none of these.
    const byDefault = await rules("networkPolicy.webhooks=null");
    const closed = await rules("networkPolicy.webhooks.cidrs=[]");
    expect(byDefault.length - closed.length).toBe(1);
    expect(byDefault).toContainEqual({
      to: [{ ipBlock: { cidr: "0.0.0.0/0" } }],
      ports: [{ protocol: "TCP", port: 443 }],
    });
  });

  // Shows: docs/email.md#for-operators-of-the-platform: `email.smtp.host`
  test("the operator reaches a mail server only where values name one", async () => {
    const rulesOf = async (name: string, ...sets: string[]) => {
      const objects = await renderChart(valuesOf(name), sets);
      const policy = objects.find(
        ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "slipway-operator",
      );
      return JSON.stringify((policy as Rendered).spec);
    };
    const rule = '"port":465';
    // Values of 0.2.0, which an upgrade may reuse, have none of these.
    expect(await rulesOf("default", "email=null", "networkPolicy.smtp=null")).toBe(await rulesOf("default"));
    expect(await rulesOf("everything")).toContain(rule);
    expect(await rulesOf("everything", "networkPolicy.smtp=null")).toContain(rule);
    expect(await rulesOf("everything", "email=null")).not.toContain(rule);
    await expect(rulesOf("everything", "email.from=")).rejects.toThrow("email.from");
    await expect(rulesOf("everything", "email.smtp.existingSecret.name=")).rejects.toThrow("existingSecret");
  });

  // Shows: docs/email.md#for-operators-of-the-platform: `email.smtp.user`
  test("settings of mail that would stop the operator are refused", async () => {
    const rendered = (...sets: string[]) => renderChart(valuesOf("everything"), sets);
    await expect(rendered("email.smtp.tls=none")).rejects.toThrow("email.smtp.user");
    for (const one of ["email.from=Slipway <a@example.com>", "email.smtp.host=https://smtp.example.com"]) {
      await expect(rendered(one)).rejects.toThrow(/pattern|does not match/i);
    }
  });

  test("notices of unpaid invoices come when they do by default where reused values have no days of them, and not where there are none", async () => {
    const terms = async (...sets: string[]) => {
      const objects = await renderChart(valuesOf("everything"), sets);
      return /name: SLIPWAY_BILLING_OVERDUE\s+value: '([^']+)'/.exec(stringify(objects))?.[1];
    };
    expect(await terms("billing.invoices.overdue.noticeDays=null")).toBe(
      '{"blockDays":14,"noticeDays":[7,1]}',
    );
    expect(await terms("billing.invoices.overdue.noticeDays=[]")).toBe('{"blockDays":14,"noticeDays":[]}');
  });

  test("values of a release without log drains have none", async () => {
    const nameOf = ({ metadata }: Rendered) => metadata.name;
    const drains = async (...sets: string[]) =>
      (await renderChart(valuesOf("everything"), sets)).filter((object) =>
        nameOf(object).includes("log-drains"),
      );
    expect(await drains("logDrains=null", "networkPolicy.logDrains=null")).toEqual([]);
    expect(await drains("analytics.collector.logs.enabled=false")).toEqual([]);
    expect((await drains("networkPolicy.logDrains=null")).map(nameOf)).toContain("slipway-log-drains");
  });

  test("values of a release that kept no logs and no metrics are taken over: none are kept", async () => {
    const without = ["analytics.collector.logs=null", "analytics.collector.metrics=null"];
    const objects = await renderChart(valuesOf("everything"), without);
    const collector = objects.find(
      ({ kind, metadata }) => kind === "DaemonSet" && metadata.name === "slipway-collector",
    );
    const names = containersOf(collector as Rendered).flatMap(({ env = [] }) => env.map(({ name }) => name));
    expect(names).toContain("SLIPWAY_COLLECTOR_STATE");
    expect(names.filter((name) => /^SLIPWAY_(COLLECTOR_(LOG|METRICS)|NODE|KUBELET)/.test(name))).toEqual([]);
  });

  test("with kubelets that are not verified no instances are sampled, and the API has no history of them", async () => {
    const objects = await renderChart(valuesOf("everything"), ["kubelet.verify=false"]);
    const variables = objects
      .filter(({ kind }) => ["DaemonSet", "Deployment"].includes(kind))
      .flatMap((object) => containersOf(object).flatMap(({ env = [] }) => env.map(({ name }) => name)));
    // The operator's own tokens for kubelets have no other right.
    expect(variables).toEqual(expect.arrayContaining(["SLIPWAY_COLLECTOR_STATE", "SLIPWAY_KUBELET_VERIFY"]));
    expect(variables.filter((name) => /^SLIPWAY_(COLLECTOR|ANALYTICS)_METRICS/.test(name))).toEqual([]);
    const role = objects.find(
      ({ kind, metadata }) => kind === "ClusterRole" && metadata.name === "slipway-collector",
    );
    expect(JSON.stringify(role)).not.toContain("nodes/stats");
  });

  // Shows: docs/applications.md#scaling-by-requests: 503 `PROJECT_FEATURE_UNAVAILABLE` where the platform counts no
  test.each([
    [true, ["analytics.collector.otlp.enabled=false", "requestScaling.besideOtlp=false"]],
    [false, ["requestScaling.besideOtlp=false"]],
    [false, ["requestScaling.enabled=false"]],
    [false, ["requestScaling=null"]],
  ])("projects are scaled by requests where all of them are counted: %s", async (isScaled, sets) => {
    const objects = await renderChart(valuesOf("everything"), [...sets, "sleep.enabled=false"]);
    const variables = objects
      .filter(({ kind }) => kind === "Deployment")
      .flatMap((object) => containersOf(object).flatMap(({ env = [] }) => env.map(({ name }) => name)));
    expect(variables).toContain("SLIPWAY_ANALYTICS_URL");
    expect(variables.includes("SLIPWAY_REQUEST_SCALING")).toBe(isScaled);
  });

  test("values of a release whose projects do not sleep are taken over, and sleep that is enabled over them has its defaults", async () => {
    const without = await renderChart(valuesOf("everything"), [
      "sleep=null",
      "catalogSleepAfterSeconds=null",
    ]);
    const isActivator = ({ metadata }: Rendered) => metadata.name === "slipway-activator";
    expect(without.filter(isActivator)).toEqual([]);
    const only = ["replicas", "resources", "nodeSelector", "tolerations"].map((name) => `sleep.${name}=null`);
    const objects = await renderChart(valuesOf("everything"), only);
    const activator = objects.find((object) => object.kind === "Deployment" && isActivator(object));
    expect(activator?.spec).toMatchObject({ replicas: 2 });
    expect(containersOf(activator as Rendered)).toMatchObject([
      { resources: { requests: { cpu: "20m", memory: "96Mi" }, limits: { memory: "512Mi" } } },
    ]);
  });

  // Shows: docs/sleep.md#turning-it-on: needs `ingress.probeUrl` and the counts of requests
  test.each([
    ["analytics.enabled=false", "counts of requests"],
    ["requestScaling.enabled=false", "counts of requests"],
    ["requestScaling.besideOtlp=false", "counts of requests"],
    ["ingress.probeUrl=", "ingress.probeUrl"],
  ])("sleep is refused with %s", async (set, message) => {
    await expect(renderChart(valuesOf("everything"), [set])).rejects.toThrow(message);
  });

  test.each([
    [true, []],
    [false, ["billing.metering.enabled=false"]],
    [false, ["billing.metering=null"]],
    [false, ["billing=null"]],
  ])("plans are metered where that is turned on: %s", async (isMetered, sets) => {
    const objects = await renderChart(valuesOf("everything"), sets);
    const metering = objects
      .filter(({ kind }) => kind === "Deployment")
      .filter((object) =>
        containersOf(object).some(({ env = [] }) =>
          env.some(({ name }) => name === "SLIPWAY_BILLING_METERING"),
        ),
      );
    expect(metering.length > 0).toBe(isMetered);
  });

  test.each([
    [true, []],
    [true, ["billing.invoices.dueDays=null", "billing.invoices.taxes=null", "billing.invoices.issuer=null"]],
    [false, ["billing.invoices.enabled=false"]],
    [false, ["billing.invoices=null"]],
    [false, ["billing=null"]],
  ])("invoices are issued where that is turned on: %s", async (areIssued, sets) => {
    const objects = await renderChart(valuesOf("everything"), sets);
    const variables = objects.flatMap(containersOf).flatMap(({ env = [] }) => env);
    const terms = variables.filter(({ name }) => name === "SLIPWAY_BILLING_INVOICES");
    expect(terms.length > 0).toBe(areIssued);
    for (const { value } of terms) {
      expect(invoiceTerms.parse(value)).toMatchObject({ dueDays: 14 });
    }
  });

  test("metrics that are enabled over such values have their defaults", async () => {
    const only = ["intervalSeconds", "bufferBytes"].map((name) => `analytics.collector.metrics.${name}=null`);
    const objects = await renderChart(valuesOf("everything"), only);
    const collector = objects.find(
      ({ kind, metadata }) => kind === "DaemonSet" && metadata.name === "slipway-collector",
    );
    const variables = containersOf(collector as Rendered).flatMap(({ env = [] }) => env);
    expect(variables).toEqual(
      expect.arrayContaining([
        { name: "SLIPWAY_COLLECTOR_METRICS_SECONDS", value: "30" },
        { name: "SLIPWAY_COLLECTOR_METRICS_BUFFER_BYTES", value: "67108864" },
      ]),
    );
  });

  test("lint finds nothing", async () => {
    for (const name of cases) {
      const args = ["lint", chartDir, "--strict", "--values", valuesOf(name), "--kube-version", "1.34.4"];
      expect(await helm(args)).toContain("0 chart(s) failed");
    }
  });

  test("the made token key is an Ed25519 key, and the ledger's URL carries its password", async () => {
    const objects = await renderedCase("default");
    const data = (name: string, key: string): string => {
      const secret = objects.find((object) => object.kind === "Secret" && object.metadata.name === name);
      return Buffer.from(secret?.data?.[key] ?? "", "base64").toString();
    };
    expect(createPrivateKey(data("slipway-token-key", "ed25519.pem")).asymmetricKeyType).toBe("ed25519");
    expect(data("slipway-ledger", "password")).toMatch(/^[A-Za-z0-9]{32}$/);
    const url = new URL(data("slipway-ledger", "url"));
    expect(url.password).toBe(data("slipway-ledger", "password"));
    expect(url.host).toBe("slipway-ledger:5432");
    const valkey = new URL(data("slipway-valkey", "url"));
    expect(valkey.host).toBe("slipway-valkey:6379");
    expect(valkey.password).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(data("slipway-valkey", "auth.conf")).toBe(`requirepass ${valkey.password}\n`);
  });

  test("what `helm test` runs is there once its Secret is named, and has neither a token nor any other Secret", async () => {
    const hooksOf = async (name: string) =>
      (await renderedCase(name)).filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] === "test");
    expect(await hooksOf("default")).toEqual([]);
    expect((await hooksOf("external-ledger")).map(({ kind }) => kind)).toEqual(["Pod"]);
    const hooks = await hooksOf("everything");
    expect(hooks.map(({ kind }) => kind).sort()).toEqual(["NetworkPolicy", "NetworkPolicy", "Pod"]);
    const pod = hooks.find(({ kind }) => kind === "Pod");
    expect(pod?.spec).toMatchObject({ automountServiceAccountToken: false, restartPolicy: "Never" });
    expect(pod?.spec).not.toHaveProperty("volumes");
    const secrets = [...JSON.stringify(pod).matchAll(/"secretKeyRef":\{"name":"([^"]+)"/g)];
    expect(secrets.map(([, name]) => name)).toEqual(["own-test-key"]);
  });

  test.each([
    ["an image that is not named", ["images.operator="], /images\.operator: name the operator's image/],
    ["a value that does not exist", ["apiServer.replica=3"], /replica/],
    [
      "two instances without an image",
      ["ledger.embedded.instances=2"],
      /images\.ledgerPatroni: name an image/,
    ],
    ["three instances of the ledger", ["ledger.embedded.instances=3"], /instances/],
    ["two ledgers", ["ledger.url=postgres://a/b", "ledger.existingSecret.name=c"], /exclude each other/],
    ["a rate limit scale of zero", ["rateLimitScale=0"], /rateLimitScale/],
    ["counting in the memory of two replicas", ["rateLimit.store=memory"], /maximum/],
    [
      "two Valkeys",
      ["rateLimit.valkey.url=valkey://a", "rateLimit.valkey.existingSecret.name=c"],
      /exclude each other/,
    ],
    ["builds without a registry", ["builds.enabled=true", "builds.image=b"], /builds\.registry\.host/],
    ["a setting of builds that does not exist", ["builds.limits.cpus=2"], /cpus/],
    ["a Secret of a store that is not named", ["analytics.existingSecret.name=a"], /needs analytics\.url/],
    ["a folder that is none", ["analytics.collector.podLogs=logs"], /podLogs/],
    ["a test that waits for longer than a run may take", ["tests.timeoutSeconds=3600"], /timeoutSeconds/],
    ["a backup that nobody could read", ["platformBackup.enabled=true"], /platformBackup.*recipients/s],
    ["a CIDR that is none", ["networkPolicy.deniedCidrs={10.0.0.0}"], /deniedCidrs/],
  ])("%s is refused", async (_, sets, message) => {
    await expect(renderChart(valuesOf("default"), sets)).rejects.toThrow(message);
  });
});

/** Who may what the chart's roles allow the operator. */
function asOperator(kubeconfig: string) {
  const config = loadKubeConfig({ file: kubeconfig });
  const user = config.getCurrentUser();
  const impersonateUser = "system:serviceaccount:slipway-system:slipway-operator";
  config.users = [{ ...user, name: user?.name ?? "", impersonateUser }];
  return config;
}

describe("on a real apiserver", () => {
  let api: TestApiserver;
  const onCluster = (args: string[]): Promise<string> => helm([...args, "--kubeconfig", api.kubeconfig]);
  /** Helm reads the apiserver's whole schema to check an upgrade, half of its time; the apiserver has taken every object before. */
  const upgrade = (...args: string[]): Promise<string> =>
    onCluster(["upgrade", "slipway", chartDir, "--disable-openapi-validation", ...args]);
  const kubectl = (args: string[], input?: string): Promise<string> =>
    run(api.binary, ["kubectl", "--kubeconfig", api.kubeconfig, ...args], { input });
  const secrets = async (...others: string[]): Promise<unknown> => {
    const names = ["slipway-ledger", "slipway-token-key", ...others];
    const text = await kubectl(["-n", "slipway-system", "get", "secret", ...names, "-o", "json"]);
    return (JSON.parse(text) as { items: Rendered[] }).items.map((item) => item.data);
  };

  beforeAll(async () => {
    api = await startApiserver();
    await kubectl(["create", "namespace", "slipway-system"]);
    // Every object is checked against the strictest of the Pod Security Standards on the way in.
    const level = "pod-security.kubernetes.io/enforce=restricted";
    await kubectl(["label", "namespace", "slipway-system", level]);
    // No controller runs here that would make it; a pod is not admitted without one.
    await kubectl(["-n", "slipway-system", "create", "serviceaccount", "default"]);
    // The chart's own: a dry run makes no namespace that its other objects would be in.
    const own = {
      "meta.helm.sh/release-name": "slipway",
      "meta.helm.sh/release-namespace": "slipway-system",
    };
    const labels = { "app.kubernetes.io/managed-by": "Helm" };
    for (const name of ["slipway-builds", "slipway-collector", "slipway-restore-test"]) {
      const metadata = { name, annotations: own, labels };
      await kubectl(["create", "-f", "-"], stringify({ apiVersion: "v1", kind: "Namespace", metadata }));
    }
  });
  afterAll(() => api.stop());

  test.each(cases)("the apiserver takes every object of %s", async (name) => {
    // The Prometheus operator's definitions are not there.
    const isCore = ({ apiVersion }: Rendered) => !apiVersion.startsWith("monitoring.coreos.com/");
    const objects = (await renderedCase(name)).filter(isCore);
    const answer = await kubectl(
      ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"],
      objects.map((object) => `---\n${stringify(object)}`).join(""),
    );
    expect(answer.trim().split("\n")).toHaveLength(objects.length);
    expect(answer).not.toMatch(/warning/i);
  });

  test("the notes warn of values that are fit for a trial alone, and of nothing else", async () => {
    const dryRun = ["install", "slipway", chartDir, "-n", "slipway-system", "--dry-run=server"];
    const warnings = async (...args: string[]): Promise<string[]> => {
      const notes =
        (await onCluster([...dryRun, "--disable-openapi-validation", ...args])).split("NOTES:")[1] ?? "";
      expect(notes).toContain("is installed in slipway-system");
      return [...notes.matchAll(/^- ([A-Za-z.]+) /gm)].map(([, value = ""]) => value).sort();
    };
    expect(await warnings("--values", valuesOf("default"))).toEqual([
      "apiServer.trustedProxies",
      ...["analytics", "apiServer", "ledger", "operator", "valkey"].map((name) => `images.${name}`),
      "platformBackup.enabled",
    ]);
    const digest = `@sha256:${"0".repeat(64)}`;
    const images = ["analytics", "apiServer", "ledger", "operator", "valkey"].map(
      (name) => `images.${name}=r/${name}${digest}`,
    );
    const backedUp = [
      "platformBackup.enabled=true",
      "platformBackup.recipients={age1a}",
      ...["endpoint=https://s3.example.com", "bucket=backups", "existingSecret=platform-s3"].map(
        (set) => `platformBackup.s3.${set}`,
      ),
    ];
    const untested = ["apiServer.trustedProxies={10.0.0.0/8}", ...images, ...backedUp].flatMap((set) => [
      "--set",
      set,
    ]);
    expect(await warnings(...untested)).toEqual(["platformBackup.verify.identitySecret.name"]);
    const fit = [...untested, "--set", "platformBackup.verify.identitySecret.name=identity"];
    expect(await warnings(...fit)).toEqual([]);
    const open = ["apiServer.ingress.enabled=true", "networkPolicy.deniedCidrs=null", "kubelet.verify=false"];
    expect(await warnings(...fit, ...open.flatMap((set) => ["--set", set]))).toEqual([
      "apiServer.ingress.tlsSecret",
      "kubelet.verify",
      "networkPolicy.deniedCidrs",
    ]);
  });

  test("pods pass the restricted Pod Security Standard", async () => {
    const objects = await renderChart(valuesOf("default"), [
      "analytics.enabled=true",
      "platformBackup.enabled=true",
      "platformBackup.recipients={age1a}",
      "platformBackup.s3.endpoint=https://s3.example.com",
      "platformBackup.s3.bucket=backups",
      "platformBackup.s3.existingSecret=platform-s3",
      "platformBackup.verify.identitySecret.name=identity",
    ]);
    const members = (await renderedCase("two-ledger-instances")).filter(
      ({ kind, metadata }) => kind === "StatefulSet" && metadata.name === "slipway-ledger",
    );
    const workloads = [...objects, ...members].filter(({ kind }) =>
      ["Deployment", "StatefulSet", "CronJob"].includes(kind),
    );
    expect(workloads).toHaveLength(11);
    for (const { metadata, spec } of workloads) {
      const workload = spec as unknown as WorkloadSpec & { jobTemplate?: { spec: WorkloadSpec } };
      const { template, volumeClaimTemplates = [] } = workload.jobTemplate?.spec ?? workload;
      const { serviceAccountName: _, volumes, ...pod } = template.spec;
      // No controller runs here that would make the token's or the claim's objects: the pod is only admitted.
      const claimed = volumeClaimTemplates.map((claim) => ({ name: claim.metadata.name, emptyDir: {} }));
      const others = ((volumes ?? []) as { name: string }[]).filter(({ name }) => name !== "token");
      const token = others.length < (volumes ?? []).length ? [{ name: "token", emptyDir: {} }] : [];
      const made = {
        ...pod,
        automountServiceAccountToken: false,
        volumes: [...others, ...token, ...claimed],
      };
      const manifest = { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, labels: {} }, spec: made };
      const answer = await kubectl(["create", "--dry-run=server", "-f", "-"], stringify(manifest));
      expect(answer).toContain("created (server dry run)");
      const privileged = { ...manifest, spec: { ...made, hostNetwork: true } };
      const refused = kubectl(["create", "--dry-run=server", "-f", "-"], stringify(privileged));
      await expect(refused).rejects.toThrow("violates PodSecurity");
    }
  });

  test("the collector's pod needs folders of the node, and is in a namespace of its own for that", async () => {
    const objects = await renderedCase("stack");
    const find = (kind: string) =>
      objects.find((object) => object.kind === kind && object.metadata.name === "slipway-collector");
    const labels = (find("Namespace")?.metadata as { labels?: Record<string, string> } | undefined)?.labels;
    expect(labels?.["pod-security.kubernetes.io/enforce"]).toBe("privileged");
    const daemonSet = find("DaemonSet")?.spec as WorkloadSpec | undefined;
    const { serviceAccountName: _, ...pod } = daemonSet?.template.spec ?? {};
    const spec = { ...pod, automountServiceAccountToken: false };
    const manifest = (namespace: string) =>
      stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "collector", namespace }, spec });
    await kubectl(["-n", "slipway-collector", "create", "serviceaccount", "default"]);
    const create = (namespace: string) =>
      kubectl(["create", "--dry-run=server", "-f", "-"], manifest(namespace));
    expect(await create("slipway-collector")).toContain("created (server dry run)");
    await expect(create("slipway-system")).rejects.toThrow(/violates PodSecurity.*hostPath/);
  });

  test("a ledger of one instance and one of two take up each other's volumes only as the page says", async () => {
    const namespace = "slipway-system";
    const install = (name: string) =>
      onCluster([
        ...["install", "slipway", chartDir, "-n", namespace, "--values", valuesOf(name)],
        // The Prometheus operator's definitions are not there.
        ...["--dry-run=server", "--disable-openapi-validation", "--set", "alerts.enabled=false"],
      ]);
    /** What an installation answers while an object is there. */
    const beside = async (object: object, name: string) => {
      const manifest = stringify(object);
      await kubectl(["create", "-f", "-"], manifest);
      try {
        return await install(name).catch(String);
      } finally {
        await kubectl(["delete", "--wait=false", "-f", "-"], manifest);
      }
    };
    const one = (await renderedCase("default")).find(
      ({ kind, metadata }) => kind === "StatefulSet" && metadata.name === "slipway-ledger",
    );
    expect(await beside(one as object, "two-ledger-instances")).toContain(
      "delete statefulset slipway-ledger",
    );
    const config = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "slipway-ledger-config", namespace },
    };
    expect(await beside(config, "default")).toContain("the ledger here has two instances");
    const claim = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "data-slipway-ledger-1", namespace },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    };
    expect(await beside(claim, "two-ledger-instances")).toContain("that of an earlier second instance");
    // No controller runs here that would take the finalizer from a claim that nothing uses.
    await kubectl([
      ...["-n", namespace, "patch", "pvc", claim.metadata.name],
      ...["--type=merge", "-p", '{"metadata":{"finalizers":null}}'],
    ]);
    expect(await install("two-ledger-instances")).toContain("The ledger is two PostgreSQL");
    expect(await install("default")).toContain("The ledger is a single PostgreSQL");
  });

  test("an upgrade keeps the password and the key, an uninstall keeps them and the definitions, and a new install takes them up", async () => {
    const values = ["-n", "slipway-system", "--values", valuesOf("stack")];
    await onCluster(["install", "slipway", chartDir, ...values]);
    const made = await secrets();
    const valkey = await secrets("slipway-valkey");
    await upgrade(...values, "--set", "rateLimitScale=2");
    expect(await secrets()).toEqual(made);
    expect(await secrets("slipway-valkey")).toEqual(valkey);
    await upgrade(...values, "--set", "ledger.url=postgres://other/ledger");
    await upgrade(...values);
    expect(await secrets()).toEqual(made);

    await onCluster(["uninstall", "slipway", "-n", "slipway-system"]);
    expect(await secrets()).toEqual(made);
    expect(await kubectl(["get", "crd", "projects.slipway.dev", "-o", "name"])).toContain(
      "projects.slipway.dev",
    );
    await onCluster(["install", "slipway", chartDir, ...values]);
    expect(await secrets()).toEqual(made);
  }, 240_000);

  test("the databases' authority, which the operator puts in, outlives whatever becomes of the release", async () => {
    const values = ["-n", "slipway-system", "--values", valuesOf("stack")];
    const namespace = "slipway-system";
    const client = KubeClient.fromConfig(asOperator(api.kubeconfig));
    const current = () => new Authority({ client, clock: systemClock, namespace }).current();
    const stored = async () => {
      const names = ["secret/slipway-database-ca", "configmap/slipway-database-ca"];
      const text = await kubectl(["-n", namespace, "get", ...names, "-o", "json"]);
      return (JSON.parse(text) as { items: Rendered[] }).items.map((item) => item.data);
    };
    try {
      expect(await stored()).toEqual([undefined, undefined]);
      const made = await current();
      const before = await stored();
      expect(Object.keys(before[0] ?? {})).toEqual(["tls.crt", "tls.key"]);
      expect(before[1]).toEqual({ "ca.crt": made.certificate });
      await expect(
        client.create(resources.secrets, { metadata: { namespace, name: "another" } }),
      ).rejects.toThrow(/cannot create resource "secrets"/);

      await upgrade(...values, "--set", "rateLimitScale=3");
      expect(await stored()).toEqual(before);
      await onCluster(["rollback", "slipway", "1", "-n", namespace]);
      expect(await stored()).toEqual(before);
      // Replaces objects by what the chart has: the Secret is immutable once it is filled.
      await expect(upgrade(...values, "--force")).rejects.toThrow(/immutable/);
      expect((await stored())[0]).toEqual(before[0]);
      await onCluster(["uninstall", "slipway", "-n", namespace]);
      await onCluster(["install", "slipway", chartDir, ...values]);
      expect((await stored())[0]).toEqual(before[0]);
      expect(await current()).toEqual(made);
      expect(await stored()).toEqual(before);

      // As operators made them themselves, before they were the chart's.
      const marks = ["meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-"];
      const objects = ["secret", "configmap"];
      for (const kind of objects) {
        await kubectl(["-n", namespace, "annotate", kind, "slipway-database-ca", ...marks]);
        await kubectl([
          "-n",
          namespace,
          "label",
          kind,
          "slipway-database-ca",
          "--overwrite",
          "app.kubernetes.io/managed-by=slipway",
        ]);
      }
      await onCluster(["uninstall", "slipway", "-n", namespace]);
      await onCluster(["install", "slipway", chartDir, ...values]);
      await upgrade(...values);
      expect(await stored()).toEqual(before);
    } finally {
      await client.close();
    }
  }, 240_000);

  test("the collector may list what names projects, and the operator's pods, and nothing else", async () => {
    await upgrade("--install", "-n", "slipway-system", "--values", valuesOf("stack"));
    const may = async (verb: string, resource: string, namespace: string): Promise<boolean> => {
      const who = "--as=system:serviceaccount:slipway-collector:slipway-collector";
      const [name = "", subresource] = resource.split("/");
      const of = subresource === undefined ? [] : [`--subresource=${subresource}`];
      const answer = await kubectl(["auth", "can-i", verb, name, ...of, "-n", namespace, who]).catch(
        (error: Error) => error.message,
      );
      return answer.trim() === "yes";
    };
    for (const verb of ["list", "watch"]) {
      expect(await may(verb, "services", "slipway-org-a")).toBe(true);
      expect(await may(verb, "ingresses.networking.k8s.io", "slipway-org-a")).toBe(true);
      expect(await may(verb, "pods", "slipway-system")).toBe(true);
      // Whose logs are.
      expect(await may(verb, "pods", "slipway-org-a")).toBe(true);
      expect(await may(verb, "secrets", "slipway-system")).toBe(false);
    }
    expect(await may("get", "pods", "slipway-org-a")).toBe(false);
    expect(await may("create", "services", "slipway-org-a")).toBe(false);
    expect(await may("get", "secrets", "slipway-collector")).toBe(false);
    // What instances use, and nothing else of nodes.
    expect(await may("get", "nodes/stats", "slipway-org-a")).toBe(true);
    for (const resource of ["nodes", "nodes/proxy", "nodes/metrics", "nodes/log"]) {
      expect(await may("get", resource, "slipway-org-a")).toBe(false);
    }
    const off = (feature: string) => ["--set", `analytics.collector.${feature}.enabled=false`];
    const values = ["-n", "slipway-system", "--values", valuesOf("stack")];
    await upgrade("--install", ...values, ...off("logs"));
    expect(await may("list", "pods", "slipway-org-a")).toBe(true);
    await upgrade("--install", ...values, ...off("logs"), ...off("metrics"));
    expect(await may("list", "pods", "slipway-org-a")).toBe(false);
    expect(await may("get", "nodes/stats", "slipway-org-a")).toBe(false);
    expect(await may("list", "pods", "slipway-system")).toBe(true);
  }, 240_000);

  test("the password of the embedded analytics store is made once, and is the same for the collector", async () => {
    const values = ["-n", "slipway-system", "--values", valuesOf("stack")];
    const passwordIn = (namespace: string) =>
      kubectl(["-n", namespace, "get", "secret", "slipway-analytics", "-o", "jsonpath={.data.password}"]);
    await upgrade("--install", ...values);
    const made = await passwordIn("slipway-system");
    expect(Buffer.from(made, "base64").toString()).toMatch(/^[A-Za-z0-9]{32}$/);
    await upgrade(...values, "--set", "rateLimitScale=4");
    expect(await Promise.all(["slipway-system", "slipway-collector"].map(passwordIn))).toEqual([made, made]);
  }, 240_000);

  test("an upgrade installs newer definitions", async () => {
    const crd = ["get", "crd", "projects.slipway.dev", "-o", "jsonpath={.spec.names.shortNames}"];
    const before = await kubectl(crd);
    const older = [{ op: "replace", path: "/spec/names/shortNames", value: ["older"] }];
    await kubectl(["patch", "crd", "projects.slipway.dev", "--type=json", "-p", JSON.stringify(older)]);
    await upgrade("-n", "slipway-system", "--values", valuesOf("stack"));
    expect(await kubectl(crd)).toBe(before);
  }, 240_000);
});
