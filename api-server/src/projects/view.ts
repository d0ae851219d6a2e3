import { type Project, toSnake } from "@slipway/crds";
import type { CustomDomainSetup } from "./domains/setup.ts";

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
    plan: spec.plan,
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
  /** By the plan, for a project whose status does not tell yet. */
  limits: PlanLimits | undefined;
  customDomainSetup: readonly CustomDomainSetup[];
}

/** `data` of the single read. Optional fields are left out where nothing is known. */
export function projectData(project: Project, { domain, updatedAt, limits, customDomainSetup }: Derived) {
  const { spec, metadata, status } = project;
  return {
    id: metadata.name,
    name: spec.name,
    description: spec.description ?? "",
    ...(domain === undefined ? {} : { domain }),
    plan: spec.plan,
    status: phaseOf(project),
    type_project: spec.type,
    ...(spec.exposure === undefined ? {} : { exposure: spec.exposure }),
    instances: spec.instances ?? 1,
    storage: { persistent: spec.storage?.persistent ?? false, capacity: spec.storage?.capacity ?? 0 },
    payment_mode: spec.paymentMode,
    ...portOf(project),
    additional_info: {
      current_instances: status?.currentInstances ?? 0,
      max_cpu: inMillicores(status?.maxCpu ?? limits?.cpu ?? ""),
      max_memory: status?.maxMemory ?? limits?.memory ?? "",
    },
    ...(spec.image === undefined ? {} : { image: { url: spec.image.url, is_public: spec.image.isPublic } }),
    ...(spec.type === "http"
      ? { custom_domains: spec.customDomains ?? [], custom_domain_setup: customDomainSetup }
      : {}),
    ...networkAccessOf(project),
    ...(spec.healthcheck === undefined ? {} : { healthcheck: toSnake(spec.healthcheck) }),
    ...(spec.autoscaling === undefined ? {} : { autoscaling: toSnake(spec.autoscaling) }),
    ...(spec.profile === undefined ? {} : { managed_service: { profile: spec.profile } }),
    ...lastDeploymentOf(project),
    created_at: metadata.creationTimestamp,
    updated_at: updatedAt,
  };
}

/** A quantity of CPU without a unit counts cores. */
function inMillicores(quantity: string): string {
  return /^[0-9]+(\.[0-9]+)?$/.test(quantity) ? `${Math.round(Number(quantity) * 1000)}m` : quantity;
}

function portOf({ spec, status }: Project): { port?: number } {
  const port = spec.port ?? status?.database?.port;
  return port === undefined ? {} : { port };
}

function networkAccessOf({ spec }: Project) {
  if (spec.networkAccess === undefined) return {};
  return {
    network_access: {
      ingress_white_list: spec.networkAccess.ingressWhiteList,
      ingress_black_list: spec.networkAccess.ingressBlackList ?? [],
    },
  };
}

function lastDeploymentOf({ status }: Project) {
  const last = status?.lastDeployment;
  if (last === undefined) return {};
  return {
    last_deployment: {
      id: last.id,
      status: last.status,
      created_at: last.startedAt,
      ...(last.finishedAt === undefined ? {} : { finished_at: last.finishedAt }),
      ...(last.message === undefined ? {} : { message: last.message }),
    },
  };
}
