import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { type BaseImages, defaultRuntimeCatalog, publicRuntimes } from "@slipway/builder";
import { KubeClient, resources, traceRequests } from "@slipway/controller-runtime";
import {
  annotations,
  type Catalog,
  findPlan,
  organizationNamespace,
  type Project,
  parseCatalog,
} from "@slipway/crds";
import {
  type AuditEntry,
  type AuditIntent,
  connectLedger,
  type Grant,
  type Ledger,
  listBlockedOrganizations,
  type Member,
  type Role,
} from "@slipway/ledger";
import { createLogger } from "@slipway/process";
import type { Tracing } from "@slipway/process/tracing";
import type { FastifyInstance } from "fastify";
import { Analytics } from "../../../api-server/src/analytics/analytics.ts";
import { type AppOptions, buildApp } from "../../../api-server/src/app.ts";
import type { AuditLog } from "../../../api-server/src/audit/log.ts";
import { Authenticator, type CredentialSource } from "../../../api-server/src/auth/authenticator.ts";
import {
  apiKeyId,
  generateApiKey,
  ownTokenVerifier,
  signUserToken,
  type UserTokenVerifier,
} from "../../../api-server/src/auth/credentials.ts";
import { FailedAttempts } from "../../../api-server/src/auth/failed-attempts.ts";
import { anyVerifier } from "../../../api-server/src/auth/oidc.ts";
import { type BuildPlatform, ledgerBuilds } from "../../../api-server/src/builds/platform.ts";
import { onDelivery } from "../../../api-server/src/builds/triggered.ts";
import { SharedReads } from "../../../api-server/src/concurrency.ts";
import { ExecSessions, type ExecSessionsOptions } from "../../../api-server/src/exec/sessions.ts";
import { ConnectionStore } from "../../../api-server/src/git/connection-owners.ts";
import { DeliveryWorker } from "../../../api-server/src/git/delivery-queue.ts";
import { RepositoryIds } from "../../../api-server/src/git/repository-ids.ts";
import { type GitServers, gitServers } from "../../../api-server/src/git/servers.ts";
import { ApiMetrics } from "../../../api-server/src/http/api-metrics.ts";
import { EventStreams } from "../../../api-server/src/http/event-streams.ts";
import type { NewestWrites } from "../../../api-server/src/http/newest-writes.ts";
import { traceWrites } from "../../../api-server/src/http/telemetry.ts";
import { JobRunStore } from "../../../api-server/src/jobs/store.ts";
import { LogFollower } from "../../../api-server/src/logs/follower.ts";
import { ledgerSnapshots, type Snapshots } from "../../../api-server/src/metrics/snapshots.ts";
import { ledgerWebhooks } from "../../../api-server/src/notifications/store.ts";
import { ledgerUsage, type UsageBook } from "../../../api-server/src/organizations/limits.ts";
import type { PaymentSecrets } from "../../../api-server/src/payments/secrets.ts";
import { openPayments } from "../../../api-server/src/payments/settings.ts";
import { parseGrant } from "../../../api-server/src/policy/permissions.ts";
import { ProjectStore } from "../../../api-server/src/projects/store.ts";
import { MemoryRateLimiter, type RateLimiter } from "../../../api-server/src/rate-limit/limiter.ts";
import { projectResource } from "../../../api-server/src/resources.ts";
import type { Services } from "../../../api-server/src/services.ts";
import { FakeApiserver } from "../apiserver/fake-apiserver.ts";
import { eventually } from "../processes/eventually.ts";

export const ZONE = "apps.localhost";
const CATALOG_FILE = new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url);

/** The application over an apiserver, with keys and users in memory. */
export interface Harness {
  app: FastifyInstance;
  kube: KubeClient;
  projects: ProjectStore;
  jobRuns: JobRunStore;
  services: Services;
  /** Audit lines so far. */
  audited: AuditEntry[];
  /** What was logged, as JSON lines. */
  logged: () => string;
  /** Makes a key with these grants; returns its headers. */
  key: (organizationId: string, ...grants: string[]) => Record<string, string>;
  /** Takes a key or a user back, or changes what it may: with grants a key has these from then on. */
  revoke: (headers: Record<string, string>, ...left: string[]) => void;
  /** Makes an owner of the organization; returns its headers. */
  owner: (organizationId: string) => Promise<Record<string, string>>;
  /** Makes a user with a role in the organization; returns its headers. */
  user: (organizationId: string, role: Role, ...grants: string[]) => Promise<Record<string, string>>;
  /** Gives a user a role in an organization. */
  member: (userId: string, organizationId: string, role: Role, ...grants: string[]) => void;
  /** Makes an organization's guarded namespace. */
  namespace: (organizationId: string) => Promise<void>;
  /** Puts a project into the cluster. */
  put: (organizationId: string, id: string, change?: Partial<Project["spec"]>) => Promise<Project>;
  /** The same, and waits until the store has it. */
  project: (organizationId: string, id: string, change?: Partial<Project["spec"]>) => Promise<Project>;
  close: () => Promise<void>;
}

export interface FakeHarness extends Harness {
  apiserver: FakeApiserver;
}

/** Of all replicas of a test. */
const tokenKey = generateKeyPairSync("ed25519");
/** Ids of repositories as every harness gives them out. */
export const repositoryIds = new RepositoryIds(tokenKey);

export interface HarnessOptions {
  /** Without one, every query of the ledger fails, as when it is away. */
  ledger?: Ledger;
  rateLimitScale?: number;
  /** What this replica shares with another; it counts in memory unless given. */
  shared?: { rateLimiter: RateLimiter; writes: NewestWrites };
  /** What checks credentials;  the keys and users of the harness unless given. */
  authenticator?: Authenticator;
  /** Where calls are audited; in `audited` unless given. */
  audit?: AuditLog;
  /** How long clients may take, and how much concurrently; the application's own limits unless given. */
  timeouts?: AppOptions["timeouts"];
  clients?: AppOptions["clients"];
  shedder?: AppOptions["shedder"];
  /** Proxies whose X-Forwarded-For is trusted; none unless given. */
  trustedProxies?: readonly string[];
  /** Whether plans are charged; they are unless given. */
  metersPlans?: boolean;
  /** What webhooks of payments are signed with; secrets of tests unless given. */
  payments?: PaymentSecrets;
  /** Whether events of Stripe's test mode count; they do not unless given. */
  acceptsStripeTests?: boolean;
  /** What databases measured; what the ledger has, or nothing without one, unless given. */
  snapshots?: Snapshots;
  /** What became of requests; there is no store unless given. */
  analytics?: Analytics;
  /** Git servers of tenants; public ones alone unless given. */
  git?: GitServers;
  /** What of builds is otherwise than: offered, kept in the ledger, without hooks and registry. */
  builds?: Partial<BuildPlatform>;
  /** What of sessions of commands is otherwise. */
  exec?: Partial<ExecSessionsOptions>;
  /** Images to build with; none unless given. */
  baseImages?: BaseImages;
  /** Verifies bearer tokens beside the own ones. */
  verifier?: UserTokenVerifier;
  /** Traces of requests; none unless given. */
  tracing?: Tracing;
  /** Who plays everybody else in the cluster; the application's own client unless given. */
  admin?: KubeClient;
}

/** The application over a fake apiserver of its own. */
export async function startFakeHarness(options: HarnessOptions = {}): Promise<FakeHarness> {
  const apiserver = await FakeApiserver.start();
  const { tracing } = options;
  const client = KubeClient.forUrl(apiserver.url, {
    onRequest: traceRequests(tracing, () => {}, { telemetryPrefix: "slipway" }),
    ...(tracing ? { annotate: traceWrites(tracing) } : {}),
  });
  const harness = await startHarness(client, options);
  const close = async () => {
    await harness.close();
    await apiserver.stop();
  };
  return { ...harness, apiserver, close };
}

/** The application over any apiserver. Closes the client when it is closed. */
export async function startHarness(kube: KubeClient, options: HarnessOptions = {}): Promise<Harness> {
  const admin = options.admin ?? kube;
  const lines: string[] = [];
  const logger = createLogger("api-server", "debug", { write: (line: string) => void lines.push(line) });
  const catalog: Catalog = parseCatalog(readFileSync(CATALOG_FILE, "utf8"));
  const projects = new ProjectStore({
    client: kube,
    logger,
    zone: ZONE,
    planOf: (plan) => findPlan(catalog, plan),
    writes: options.shared?.writes,
  });
  const jobRuns = new JobRunStore({ client: kube, logger, writes: options.shared?.writes });
  const connections = new ConnectionStore({ client: kube, logger });
  const keys = new Map<string, { organizationId: string; sha256: Buffer; grants: Grant[] }>();
  const members: Member[] = [];
  const source: CredentialSource = {
    findApiKey: async (id) => {
      const known = keys.get(id);
      return known && { id, ...known };
    },
    findMember: async (userId, organizationId) =>
      members.find((member) => member.userId === userId && member.organizationId === organizationId),
  };
  const ledger =
    options.ledger ?? connectLedger({ url: "postgresql://nobody@127.0.0.1:1/none", applicationName: "test" });
  const audited: AuditEntry[] = [];
  const git = options.git ?? gitServers({});
  const streams = options.builds?.streams ?? new EventStreams();
  const services: Services = {
    logger,
    metrics: new ApiMetrics({ processMetrics: false }),
    authenticator:
      options.authenticator ??
      new Authenticator(
        source,
        anyVerifier(ownTokenVerifier(tokenKey), ...(options.verifier ? [options.verifier] : [])),
        undefined,
        new FailedAttempts({ limit: 60 * (options.rateLimitScale ?? 1_000) }),
      ),
    rateLimiter: options.shared?.rateLimiter ?? new MemoryRateLimiter(),
    rateLimitScale: options.rateLimitScale ?? 1_000,
    audit: options.audit ?? memoryAudit(audited),
    catalog: { current: catalog },
    supports: () => true,
    scalesByRequests: true,
    snapshots:
      options.snapshots ?? (options.ledger ? ledgerSnapshots(ledger) : { newest: async () => undefined }),
    analytics: options.analytics ?? new Analytics(undefined),
    projects,
    jobRuns,
    backups: () => ({ schedule: "30 2 * * *", retentionDays: 7 }),
    git,
    repositoryIds,
    connections,
    builds: {
      store: ledgerBuilds(ledger),
      isOffered: () => true,
      hookBase: undefined,
      registryKey: () => undefined,
      registryHost: () => undefined,
      streams,
      ...options.builds,
    },
    runtimes: () => publicRuntimes(defaultRuntimeCatalog(), options.baseImages ?? {}),
    logs: new LogFollower({ kube, projects, logger, streams, limits: { pollIntervalMs: 20 } }),
    exec: new ExecSessions({
      projects,
      logger,
      listBlocked: async (ids) => (options.ledger ? listBlockedOrganizations(ledger, ids) : []),
      ...options.exec,
    }),
    kube,
    environments: new SharedReads(),
    tracing: options.tracing,
    ledger,
    webhooks: ledgerWebhooks(ledger),
    payments: openPayments(
      options.payments ?? {
        stripe: () => ["whsec_of_stripe_in_tests"],
        generic: () => [`whsec_${Buffer.alloc(32, "generic").toString("base64")}`],
      },
      options,
    ),
    sendsEmail: true,
    metersPlans: options.metersPlans ?? true,
    usage: options.ledger ? ledgerUsage(ledger, { current: catalog }) : endlessUsage,
    domainZone: ZONE,
    reservedHostnames: ["api", "platform.example.com"],
    trustedProxies: options.trustedProxies ?? [],
    now: () => new Date(),
  };
  const app = buildApp(services, options);
  const deliveries = new DeliveryWorker(
    services.builds.store.deliveries,
    (delivery, event) => onDelivery(delivery, event, services),
    logger,
    { pollMs: 10, retryMs: 50 },
  );
  await app.ready();
  projects.start();
  jobRuns.start();
  connections.start();
  if (options.ledger || options.builds?.store) {
    deliveries.start();
  }
  await eventually("the stores to have synced", () =>
    [projects, jobRuns, connections].every(({ hasSynced }) => hasSynced),
  );

  const put: Harness["put"] = (organizationId, id, change = {}) =>
    admin.create<Project>(projectResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Project",
      metadata: { name: id, namespace: organizationNamespace(organizationId) },
      spec: { ...exampleSpec, ...change },
    });

  const user: Harness["user"] = async (organizationId, role, ...grants) => {
    const userId = `u${members.length}`;
    members.push({ userId, organizationId, role, grants: grants.map(parseGrant) });
    const token = await signUserToken(tokenKey, userId, 1);
    return { authorization: `Bearer ${token}`, "x-organization-id": organizationId };
  };

  return {
    app,
    kube,
    projects,
    jobRuns,
    services,
    audited,
    logged: () => lines.join(""),
    key: (organizationId, ...grants) => {
      const { id, key, sha256 } = generateApiKey();
      keys.set(id, { organizationId, sha256, grants: grants.map(parseGrant) });
      return { "x-api-key": key };
    },
    revoke: (headers, ...left) => {
      const id = apiKeyId(headers["x-api-key"] ?? "") ?? "";
      const known = keys.get(id);
      if (left.length === 0) {
        keys.delete(id);
      } else if (known) {
        keys.set(id, { ...known, grants: left.map(parseGrant) });
      }
      if (headers.authorization) {
        members.splice(0);
      }
    },
    owner: (organizationId) => user(organizationId, "owner"),
    user,
    member: (userId, organizationId, role, ...grants) =>
      void members.push({ userId, organizationId, role, grants: grants.map(parseGrant) }),
    namespace: async (organizationId) => {
      const name = organizationNamespace(organizationId);
      await admin.create(resources.namespaces, {
        metadata: { name, annotations: { [annotations.guarded]: "1" } },
      });
    },
    put,
    project: async (organizationId, id, change) => {
      const created = await put(organizationId, id, change);
      await eventually(`project ${id}`, () =>
        projects.list(organizationId).some((project) => project.id === id),
      );
      return created;
    },
    close: async () => {
      await services.exec.endAll();
      await app.close();
      await deliveries.stop();
      await projects.stop();
      await jobRuns.stop();
      await connections.stop();
      await git.close();
      await kube.close();
      if (!options.ledger) {
        await ledger.destroy();
      }
    },
  };
}

/** Keeps what is over in the list. */
function memoryAudit(audited: AuditEntry[]): AuditLog {
  const begun: AuditIntent[] = [];
  return {
    begin: async (intent) => ({ id: String(begun.push(intent) - 1), at: new Date() }),
    finish: ({ id }, { projectId, ...outcome }) => {
      const intent = begun[Number(id)] as AuditIntent;
      audited.push({ ...intent, ...outcome, projectId: projectId ?? intent.projectId });
    },
    record: (entry) => void audited.push(entry),
  };
}

/** A body of `POST /v1/project` that every rule allows; `config` is merged. */
export function exampleBody(change: Record<string, unknown> = {}, config: Record<string, unknown> = {}) {
  return {
    name: "shop-front",
    plan: "free",
    payment_mode: "hourly",
    ...change,
    config: {
      type_project: "http",
      exposure: "public",
      image: { url: "registry.example.com/shop:1", is_public: true },
      port: 8080,
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      envs: [],
      network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }] },
      ...config,
    },
  };
}

/** A body that makes a worker; `config` is merged. */
export function exampleWorkerBody(
  change: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
) {
  return {
    name: "mail-sender",
    plan: "basic",
    payment_mode: "hourly",
    ...change,
    config: {
      type_project: "worker",
      image: { url: "registry.example.com/mail:1", is_public: true },
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      ...config,
    },
  };
}

/** What a worker has, and what it has not of {@link exampleSpec}. */
export const workerSpec: Partial<Project["spec"]> = {
  type: "worker",
  name: "mail-sender",
  plan: "basic",
  exposure: undefined,
  port: undefined,
  networkAccess: undefined,
  readiness: { command: ["cat", "/tmp/ready"] },
};

/** A body that makes a job; `config` is merged. */
export function exampleJobBody(change: Record<string, unknown> = {}, config: Record<string, unknown> = {}) {
  return {
    name: "nightly-report",
    plan: "job-basic",
    payment_mode: "per_minute",
    ...change,
    config: {
      type_project: "job",
      image: { url: "registry.example.com/report:1", is_public: true },
      envs: [],
      storage: { persistent: false, capacity: 1 },
      job: { cron: "*/5 * * * *" },
      ...config,
    },
  };
}

/** What a job has, and what it has not of {@link exampleSpec}. */
export const jobSpec: Partial<Project["spec"]> = {
  type: "job",
  name: "nightly-report",
  plan: "job-basic",
  paymentMode: "per_minute",
  exposure: undefined,
  port: undefined,
  instances: undefined,
  networkAccess: undefined,
  job: { cron: "0 0 * * *", command: ["run"] },
};

export const exampleSpec: Project["spec"] = {
  type: "http",
  name: "shop-front",
  plan: "free",
  paymentMode: "hourly",
  exposure: "public",
  image: { url: "registry.example.com/shop:1", isPublic: true },
  port: 8080,
  instances: 1,
  storage: { persistent: false, capacity: 1 },
  networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] },
};

/** No ceilings, for tests without a ledger. */
const endlessUsage: UsageBook = { reserve: async () => {}, release: async () => {} };
