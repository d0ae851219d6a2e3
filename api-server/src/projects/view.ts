import {
  customDomainRecords,
  type Deployment,
  type DnsRecord,
  isDatabaseType,
  type Project,
  toSnake,
} from "@slipway/crds";
import { builtView } from "../builds/view.ts";
import { planChangeOf, planInForce } from "../databases/plan.ts";

/** A Project as `/v1` shows it: snake_case, and nothing that only the platform needs. Pure. */

/** An entry of `data.projects` of the list. */
export interface ProjectItem {
  id: string;
  name: string;
  type_project: string;
  plan: string;
  status: string;
  managed_service?: { profile: string };
}

/** What a project without a status is: the operator has not seen it yet. */
const NEW_PHASE = "creating";

export const phaseOf = (project: Project): string => project.status?.phase ?? NEW_PHASE;

export function projectItem(project: Project): ProjectItem {
  const { spec, metadata } = project;
  return {
    id: metadata.name,
    name: spec.name,
    type_project: spec.type,
    plan: planInForce(project),
    status: phaseOf(project),
    ...(spec.profile === undefined ? {} : { managed_service: { profile: spec.profile } }),
  };
}

/** What one instance may use, as Kubernetes quantities. */
export interface PlanLimits {
  cpu: string;
  memory: string;
}

interface Derived {
  /** Default domain of a public HTTP project. */
  domain: string | undefined;
  /** RFC 3339. */
  updatedAt: string;
  /** By the plan, for a project whose status does not report it yet. */
  limits: PlanLimits | undefined;
  /** Instances that the project has: its own, or its plan's. */
  instances: number;
  customDomainSetup: readonly CustomDomainSetup[];
  /** The caller may read the project's logs. */
  withLogs?: boolean;
  /** The caller may read the project's metrics. */
  withMetrics?: boolean;
}

/** `data` of the single read. Optional fields are left out where nothing is known. */
export function projectData(project: Project, derived: Derived) {
  const { domain, updatedAt, limits, instances, customDomainSetup } = derived;
  const { withLogs = false, withMetrics = false } = derived;
  const { spec, metadata, status } = project;
  return {
    id: metadata.name,
    name: spec.name,
    description: spec.description ?? "",
    ...(domain === undefined ? {} : { domain }),
    plan: planInForce(project),
    status: phaseOf(project),
    ...(spec.paused === true && spec.pausedBy !== undefined ? { paused_by: spec.pausedBy } : {}),
    type_project: spec.type,
    ...(spec.exposure === undefined ? {} : { exposure: spec.exposure }),
    instances,
    storage: { persistent: spec.storage?.persistent ?? false, capacity: spec.storage?.capacity ?? 0 },
    payment_mode: spec.paymentMode,
    ...portOf(project),
    additional_info: {
      // The operator writes nothing else when a run starts or ends.
      current_instances:
        spec.type === "job" ? Number(status?.job?.activeRun !== undefined) : (status?.currentInstances ?? 0),
      max_cpu: inMillicores(status?.maxCpu ?? limits?.cpu ?? ""),
      max_memory: status?.maxMemory ?? limits?.memory ?? "",
    },
    ...(spec.image === undefined ? {} : { image: { url: spec.image.url, is_public: spec.image.isPublic } }),
    ...(spec.type === "http"
      ? { custom_domains: spec.customDomains ?? [], custom_domain_setup: customDomainSetup }
      : {}),
    ...networkAccessOf(project),
    ...(spec.healthcheck === undefined ? {} : { healthcheck: toSnake(spec.healthcheck) }),
    ...(spec.terminationGracePeriodSeconds === undefined
      ? {}
      : { termination_grace_period_seconds: spec.terminationGracePeriodSeconds }),
    ...(spec.sleepAfterSeconds === undefined ? {} : { sleep_after_seconds: spec.sleepAfterSeconds }),
    ...(status?.sleep?.phase === "asleep" ? { sleeping_since: status.sleep.since } : {}),
    ...(spec.command === undefined ? {} : { command: spec.command }),
    ...(spec.readiness === undefined ? {} : { readiness: spec.readiness }),
    ...(spec.preDeployCommand === undefined ? {} : { pre_deploy_command: spec.preDeployCommand }),
    ...(spec.preDeployTimeoutSeconds === undefined
      ? {}
      : { pre_deploy_timeout_seconds: spec.preDeployTimeoutSeconds }),
    ...(spec.autoscaling === undefined ? {} : { autoscaling: toSnake(spec.autoscaling) }),
    // Its rate is a metric.
    ...(withMetrics && status?.requestScaling !== undefined
      ? { request_scaling: toSnake(status.requestScaling) }
      : {}),
    ...(spec.profile === undefined ? {} : { managed_service: { profile: spec.profile } }),
    ...databaseOf(project),
    ...planChange(project, updatedAt),
    ...jobOf(project),
    ...lastDeploymentOf(project, withLogs),
    ...lastTerminationOf(project, withLogs),
    ...referencesOf(project),
    ...variableGroupsOf(project),
    ...builtView(project),
    created_at: metadata.creationTimestamp,
    updated_at: updatedAt,
  };
}

/** A quantity of CPU without a unit counts cores. */
function inMillicores(quantity: string): string {
  return /^[0-9]+(\.[0-9]+)?$/.test(quantity) ? `${Math.round(Number(quantity) * 1000)}m` : quantity;
}

function portOf({ spec, status }: Project): { port?: number } {
  const port = spec.port ?? status?.database?.port ?? status?.database?.inside?.port;
  return port === undefined ? {} : { port };
}

function networkAccessOf({ spec }: Project) {
  if (spec.networkAccess === undefined) {
    return {};
  }
  return {
    network_access: {
      ingress_white_list: spec.networkAccess.ingressWhiteList,
      ingress_black_list: spec.networkAccess.ingressBlackList ?? [],
    },
  };
}

/** What a database runs, and what really does: another engine may run in place of the requested one. */
function databaseOf({ spec, status }: Project) {
  if (!isDatabaseType(spec.type)) {
    return {};
  }
  const { engine, runningVersion, storage } = status?.database ?? {};
  return {
    database: {
      engine: engine ?? spec.type,
      version: spec.version ?? "",
      ...(runningVersion === undefined ? {} : { running_version: runningVersion }),
      ...(storage?.resizing ? { storage_resizing: true } : {}),
    },
  };
}

function planChange(project: Project, updatedAt: string) {
  const change = planChangeOf(project, updatedAt);
  return change === undefined ? {} : { plan_change: change };
}

/** When a job runs, and what it missed. */
function jobOf({ spec, status }: Project) {
  if (spec.job === undefined) {
    return {};
  }
  const { nextScheduledAt, missed = 0, missedReasons = [] } = status?.job ?? {};
  const rests = spec.paused === true || spec.job.closedAt !== undefined;
  return {
    schedule: {
      cron: spec.job.cron,
      timezone: "UTC",
      ...(nextScheduledAt === undefined || rests ? {} : { next_scheduled_at: utc(nextScheduledAt) }),
    },
    missed_runs: {
      total: missed,
      reasons: missedReasons.map(({ reason, count, lastScheduledAt }) => ({
        reason,
        count,
        last_scheduled_at: utc(lastScheduledAt),
      })),
    },
  };
}

const utc = (moment: string): string => new Date(moment).toISOString();

function lastDeploymentOf({ status }: Project, withLogs: boolean) {
  const last = status?.lastDeployment;
  if (last === undefined) {
    return {};
  }
  return {
    last_deployment: {
      id: last.id,
      status: last.status,
      created_at: last.startedAt,
      ...(last.finishedAt === undefined ? {} : { finished_at: last.finishedAt }),
      ...(last.message === undefined ? {} : { message: last.message }),
      ...preDeployOf(
        status?.deployments?.find(({ id }) => id === last.id),
        withLogs,
      ),
    },
  };
}

/**
 * What has become of a deployment's pre-deploy command; what it wrote is part of the project's logs.
 * @param deployment undefined for one that is no longer listed
 */
export function preDeployOf(deployment: Deployment | undefined, withLogs: boolean) {
  if (deployment?.preDeploy === undefined) {
    return {};
  }
  const { status, startedAt, finishedAt, exitCode, lastLines } = deployment.preDeploy;
  return {
    pre_deploy: {
      status,
      ...(startedAt === undefined ? {} : { started_at: utc(startedAt) }),
      ...(finishedAt === undefined ? {} : { finished_at: utc(finishedAt) }),
      ...(exitCode === undefined ? {} : { exit_code: exitCode }),
      ...(withLogs && lastLines !== undefined ? { last_lines: lastLines } : {}),
    },
  };
}

/** Whether what its variables refer to is resolved, and what that waits for. */
function referencesOf({ status }: Project) {
  const condition = status?.conditions?.find(({ type }) => type === "ReferencesReady");
  if (condition === undefined) {
    return {};
  }
  const { reason, message } = condition;
  const isReady = condition.status === "True";
  return { references: { ready: isReady, ...(isReady ? {} : { reason, message }) } };
}

/** The groups that it attaches, if any, and whether it has their newest values. */
function variableGroupsOf({ spec, status }: Project) {
  const { variableGroups: ids = [] } = spec;
  if (ids.length === 0) {
    return {};
  }
  const condition = status?.conditions?.find(({ type }) => type === "VariablesReady");
  const isReady = condition?.status === "True";
  const { reason, message } = condition ?? {};
  const why = isReady || reason === undefined ? {} : { reason, message };
  return { variable_groups: { ids: [...ids], ready: isReady, ...why } };
}

/** How the instance that ended last has ended; what it wrote is part of the project's logs. */
function lastTerminationOf({ status }: Project, withLogs: boolean) {
  if (status?.lastTermination === undefined) {
    return {};
  }
  const { instance, exitCode, signal, reason, finishedAt, restarts, lastLines } = status.lastTermination;
  return {
    last_termination: {
      instance,
      exit_code: exitCode,
      ...(signal === undefined ? {} : { signal }),
      reason,
      finished_at: utc(finishedAt),
      restarts,
      ...(withLogs && lastLines !== undefined ? { last_lines: lastLines } : {}),
    },
  };
}

/** State of a custom domain, as `/v1` shows it. */
export interface CustomDomainSetup {
  hostname: string;
  status: string;
  ssl_status: string;
  dns_records: DnsRecord[];
  /** What is missing, where the operator reports it. */
  message?: string;
}

/**
 * Every custom domain of the spec, in its order. One that the operator has not reported yet is pending, and its records
 * are known all the same. Pure.
 * @param target the project's default domain
 */
export function customDomainSetup(
  { spec, status }: Pick<Project, "spec" | "status">,
  organization: string,
  target: string,
): CustomDomainSetup[] {
  return (spec.customDomains ?? []).map((hostname) => {
    const reported = status?.customDomains?.find((domain) => domain.hostname === hostname);
    return {
      hostname,
      status: reported?.status ?? "pending",
      ssl_status: reported?.sslStatus ?? "pending_validation",
      dns_records: reported?.dnsRecords ?? customDomainRecords({ hostname, organization, target }),
      ...(reported?.message ? { message: reported.message } : {}),
    };
  });
}
