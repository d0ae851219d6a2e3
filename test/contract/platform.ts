import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import {
  API_VERSION,
  billingCycle,
  jobRunName,
  labels,
  MANAGED_BY,
  organizationNamespace,
  type Project,
  SYSTEM_NAMESPACE,
} from "@slipway/crds";
import {
  connectLedger,
  insertApiKey,
  insertMember,
  insertOrganization,
  migrateToLatest,
  recordBuild,
  recordBuildLog,
  recordJobRuns,
  storeJobRunLog,
} from "@slipway/ledger";
import { generateApiKey, readTokenKey, signUserToken } from "../../api-server/src/auth/credentials.ts";
import { newUserId } from "../../api-server/src/ids.ts";
import { isProvisioned } from "../../api-server/src/organizations/service.ts";
import { EVERY_GRANT, parseGrant } from "../../api-server/src/policy/permissions.ts";
import { projectResource, variableGroupResource } from "../../api-server/src/resources.ts";
import { startApiserver } from "../../hack/cluster/apiserver.ts";
import { root } from "../../hack/lib/paths.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { GiveUp, waitFor } from "../../hack/lib/wait.ts";
import { databaseSpec } from "../kit/api-server/databases.ts";
import { HOOK_SECRET, putConnection } from "../kit/api-server/git.ts";
import { exampleSpec } from "../kit/api-server/harness.ts";
import { runRow } from "../kit/api-server/job-runs.ts";
import { applyCrds } from "../kit/clusters/definitions.ts";
import { countQuotas } from "../kit/clusters/quotas.ts";
import { JobPlayer } from "../kit/operator/pre-deploy.ts";
import { startNode, writeTokenKey } from "../kit/processes/node.ts";
import { startPostgres } from "../kit/servers/postgresql.ts";

const ORGANIZATION = "contract";

/** The platform without nodes: a real PostgreSQL, a real kube-apiserver, the operator and the API server. */
export interface Platform {
  /** Base address of the API. */
  url: string;
  /** Key with every grant of the one organization. */
  apiKey: string;
  /** Of an owner of the organization. */
  ownerToken: string;
  /** A run of `pscheduled` that has ended, of the current billing cycle. */
  runId: string;
  /** The same of the application `pread1`: a one-off run. */
  oneOffRunId: string;
  /** What deliveries to the connection `gcontract` are signed with. */
  hookSecret: string;
  /** Whether both processes still run; the reason when one does not. */
  problem: () => string | undefined;
  stop: () => Promise<void>;
}

/** @param log file for both processes' logs */
export async function startPlatform(log: string): Promise<Platform> {
  const undo: (() => unknown)[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) {
      await step();
    }
  };
  try {
    // Without its controller the finalizer of a volume claim would never be removed.
    const flags = { "disable-admission-plugins": "ServiceAccount,StorageObjectInUseProtection" };
    const [apiserver, postgres] = await Promise.all([startApiserver({ flags }), startPostgres()]);
    undo.push(
      () => apiserver.stop(),
      () => postgres.stop(),
    );
    const dir = await mkdtemp(join(tmpdir(), "slipway-contract-"));
    undo.push(() => rm(dir, { recursive: true, force: true }));
    const tokenKeyFile = join(dir, "token.pem");
    writeTokenKey(tokenKeyFile);
    await writeFile(join(dir, "builds.yaml"), "baseImages: {}\n");
    const paymentSecretsFile = join(dir, "payment-secrets");
    await writeFile(paymentSecretsFile, `whsec_${randomBytes(32).toString("base64")}\n`);
    const kube = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
    undo.push(() => kube.close());
    await applyCrds(kube);
    await kube.create(resources.namespaces, { metadata: { name: SYSTEM_NAMESPACE } });
    undo.push(countQuotas(kube));
    // Without the controller of Jobs a project with a pre-deploy command would never be deleted.
    undo.push(new JobPlayer(kube, organizationNamespace(ORGANIZATION)).play());
    // The operator waits for the class of the ingress, which decides whether access lists are enforced.
    const ingressClass = { metadata: { name: "traefik" }, spec: { controller: "k8s.io/ingress-nginx" } };
    await kube.create<KubernetesObject>(resources.ingressClasses, ingressClass);
    const { apiKey, ownerToken } = await prepareLedger(postgres.url, tokenKeyFile);

    const [port, metricsPort, operatorPort] = await freePorts(3);
    const output = openSync(log, "a");
    undo.push(() => closeSync(output));
    const common = {
      SLIPWAY_LEDGER_URL: postgres.url,
      SLIPWAY_CATALOG_FILE: join(root, "charts/slipway/files/catalog.yaml"),
      SLIPWAY_LOG_LEVEL: "info",
      KUBECONFIG: apiserver.kubeconfig,
    };
    const operator = startNode(
      "operator/src/main.ts",
      [],
      {
        ...common,
        SLIPWAY_NAMESPACE: SYSTEM_NAMESPACE,
        // Annotations for this ingress need no definitions of the ingress's own.
        SLIPWAY_INGRESS_ALLOW_LIST: "nginx",
        SLIPWAY_EGRESS_DENIED_CIDRS: "10.0.0.0/8,169.254.0.0/16",
        SLIPWAY_METRICS_PORT: String(operatorPort),
      },
      output,
    );
    const api = startNode(
      "api-server/src/main.ts",
      [],
      {
        ...common,
        SLIPWAY_TOKEN_KEY_FILE: tokenKeyFile,
        // Builds are requested, and nothing runs them.
        SLIPWAY_BUILDS_FILE: join(dir, "builds.yaml"),
        SLIPWAY_REQUEST_SCALING: "true",
        SLIPWAY_STRIPE_SECRETS_FILE: paymentSecretsFile,
        SLIPWAY_PAYMENT_SECRETS_FILE: paymentSecretsFile,
        SLIPWAY_RATE_LIMIT_SCALE: "1000000",
        SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
        SLIPWAY_PORT: String(port),
        SLIPWAY_METRICS_PORT: String(metricsPort),
        SLIPWAY_DRAIN_SECONDS: "0",
      },
      output,
    );
    const processes = { operator, "API server": api };
    undo.push(() => Promise.all(Object.values(processes).map(end)));
    const url = `http://127.0.0.1:${port}`;
    const problem = () =>
      Object.entries(processes)
        .filter(([, child]) => child.exitCode !== null || child.signalCode !== null)
        .map(([name]) => `the ${name} has ended; its log: ${log}`)[0];
    await waitFor("the platform", 300_000, async () => {
      const why = problem();
      if (why) {
        throw new GiveUp(why);
      }
      const ready = await fetch(`http://127.0.0.1:${metricsPort}/readyz`).catch(() => undefined);
      const namespace = await kube.getOrUndefined(resources.namespaces, {
        name: organizationNamespace(ORGANIZATION),
      });
      return ready?.status === 200 && isProvisioned(namespace);
    });
    await createProjects(kube);
    // Of another organization: calls of this one would change it.
    await kube.create(resources.namespaces, { metadata: { name: organizationNamespace("deliveries") } });
    await putConnection(kube, "deliveries", "gcontract");
    const runId = await recordRun(postgres.url, "pscheduled");
    const oneOffRunId = await recordRun(postgres.url, "pread1", "contract");
    await recordBuilds(postgres.url, kube);
    return { url, apiKey, ownerToken, runId, oneOffRunId, hookSecret: HOOK_SECRET, problem, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A variable group, as `/v1` writes it. */
async function createGroup(kube: KubeClient): Promise<void> {
  const [name, namespace] = ["vcontract", organizationNamespace(ORGANIZATION)];
  const secretRef = { name: `${name}-values` };
  await kube.create<KubernetesObject>(variableGroupResource, {
    metadata: { name, namespace },
    spec: { displayName: "Shared", secretRef },
  } as KubernetesObject);
  const own = { [labels.managedBy]: MANAGED_BY, [labels.variableGroup]: name };
  await kube.create(resources.secrets, {
    metadata: { name: secretRef.name, namespace, labels: own },
    data: { KEY: "dmFsdWU=" },
  } as KubernetesObject);
}

/** Projects to read, change and delete; schemathesis.toml names the job, the database and those from Git. */
async function createProjects(kube: KubeClient): Promise<void> {
  const namespace = organizationNamespace(ORGANIZATION);
  const create = (name: string, spec: Project["spec"]) =>
    kube.create<Project>(projectResource, {
      apiVersion: API_VERSION,
      kind: "Project",
      metadata: { name, namespace },
      spec: { ...spec, name },
    });
  const { image, storage } = exampleSpec;
  await create("pscheduled", {
    type: "job",
    name: "pscheduled",
    plan: "job-basic",
    paymentMode: "per_minute",
    image,
    storage,
    job: { cron: "0 3 * * *" },
  });
  // Their connection is missing, as is every account of GitHub: what needs one is refused.
  const source = { connectionId: "missing", repositoryId: "r1", branch: "main", autoDeploy: false };
  const { image: _image, ...rest } = { ...exampleSpec, plan: "basic" };
  await create("psource", { ...rest, source, build: {} });
  const github = { repositoryOwner: "acme", repositoryName: "shop", branch: "main", autoDeploy: false };
  await create("pgithub", { ...rest, github });
  // No image of it is here: it waits, and nobody ever reaches it.
  await create("pdatabase", databaseSpec("postgresql"));
  await createGroup(kube);
  for (const name of ["pread1", "pread2", "pread3", "pread4"]) {
    await create(name, { ...exampleSpec, plan: "basic" });
  }
}

/** Puts a build of each project from Git into the ledger, with its log. */
async function recordBuilds(url: string, kube: KubeClient): Promise<void> {
  const ledger = connectLedger({ url, applicationName: "contract" });
  const namespace = organizationNamespace(ORGANIZATION);
  try {
    for (const name of ["psource", "pgithub"]) {
      const { metadata } = await kube.get<Project>(projectResource, { namespace, name });
      const at = new Date();
      await recordBuild(ledger, {
        organization_id: ORGANIZATION,
        project_id: name,
        project_uid: metadata.uid ?? "",
        id: "bcontract",
        triggered_by: "manual",
        branch: "main",
        tag: null,
        commit_sha: "a".repeat(40),
        commit_message: null,
        status: "failed",
        digest: null,
        error_code: "BUILD_COMMAND_FAILED",
        error_message: "make failed",
        created_at: at,
        started_at: at,
        finished_at: at,
      });
      await recordBuildLog(ledger, { organizationId: ORGANIZATION, projectId: name, id: "bcontract" }, [
        { sequence: 1, at, level: "info", step: "build", message: "a line", final: true },
      ]);
    }
  } finally {
    await ledger.destroy();
  }
}

/** Puts a run into the ledger, with its log. Returns its id. @param suffix of a run that was requested */
async function recordRun(url: string, projectId: string, suffix?: string): Promise<string> {
  const ledger = connectLedger({ url, applicationName: "contract" });
  try {
    const { startedAt } = billingCycle(new Date());
    const names = { organizationId: ORGANIZATION, projectId, id: jobRunName(projectId, startedAt, suffix) };
    const requested = { trigger: "manual", metrics: { status: "unavailable", exitCode: 0 } } as const;
    const row = runRow(names, startedAt, suffix === undefined ? {} : requested);
    await recordJobRuns(ledger, [row]);
    await storeJobRunLog(ledger, row, "a line\n");
    return row.id;
  } finally {
    await ledger.destroy();
  }
}

/** Makes the organization, a key with every grant of it, and an owner with a token. */
async function prepareLedger(
  url: string,
  tokenKeyFile: string,
): Promise<{ apiKey: string; ownerToken: string }> {
  const ledger = connectLedger({ url, applicationName: "contract" });
  try {
    await migrateToLatest(ledger);
    await insertOrganization(ledger, { id: ORGANIZATION, name: "Contract" });
    const { id, key, sha256 } = generateApiKey();
    await insertApiKey(ledger, {
      id,
      organizationId: ORGANIZATION,
      prefix: "slw",
      sha256,
      grants: [...EVERY_GRANT, parseGrant("project.exec on project:*")],
    });
    const userId = newUserId();
    await insertMember(ledger, { userId, organizationId: ORGANIZATION, role: "owner", grants: [] });
    return { apiKey: key, ownerToken: await signUserToken(readTokenKey(tokenKeyFile), userId, 1) };
  } finally {
    await ledger.destroy();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
