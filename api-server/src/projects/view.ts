import type { Project } from "@slipway/crds";

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

/** `data` of the single read. Optional fields are left out where nothing is known. `updatedAt` is RFC 3339. */
export function projectData(project: Project, domain: string | undefined, updatedAt: string) {
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
      max_cpu: status?.maxCpu ?? "",
      max_memory: status?.maxMemory ?? "",
    },
    ...(spec.image === undefined ? {} : { image: { url: spec.image.url, is_public: spec.image.isPublic } }),
    ...(spec.type === "http" ? { custom_domains: spec.customDomains ?? [] } : {}),
    ...networkAccessOf(project),
    ...(spec.profile === undefined ? {} : { managed_service: { profile: spec.profile } }),
    ...lastDeploymentOf(project),
    created_at: metadata.creationTimestamp,
    updated_at: updatedAt,
  };
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
