import type { KubernetesObject } from "@slipway/controller-runtime";
import {
  defaultDomain,
  fieldManagers,
  organizationOfNamespace,
  type Project,
  type ProjectType,
  type TypedField,
  typesWith,
  withFormerState,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import {
  type CustomDomainSetup,
  customDomainSetup,
  type PlanLimits,
  type ProjectItem,
  projectData,
  projectItem,
} from "./view.ts";

/** What is known beside the resource. */
export interface ApiProjectContext {
  /** RFC 3339; when the spec was last changed. */
  updatedAt: string;
  /** Zone of default domains. */
  zone: string;
  /** What one instance may use by the plan, until the status has what it does. */
  limits?: PlanLimits | undefined;
  /** Instances of a project that names none. */
  defaultInstances?: number | undefined;
}

/**
 * One state of a project, with its view in `/v1` computed once: the store replaces the object when it
 * changes, so the view is never outdated.
 */
export class ApiProject {
  readonly resource: Project;
  readonly organizationId: string;
  readonly updatedAt: string;
  /** The default domain of a public HTTP project. */
  readonly domain: string | undefined;
  /** How many instances its spec requests, or its plan has. */
  readonly instances: number;
  readonly #limits: PlanLimits | undefined;
  #item: ProjectItem | undefined;
  /** By what of it is shown. */
  readonly #json = new Map<string, string>();

  constructor(resource: Project, { updatedAt, zone, limits, defaultInstances }: ApiProjectContext) {
    this.resource = resource;
    this.organizationId = organizationOfNamespace(resource.metadata.namespace ?? "") ?? "";
    this.updatedAt = updatedAt;
    const hasDomain = resource.spec.type === "http" && resource.spec.exposure === "public";
    // By the spec, not the status: a domain that was changed shows immediately.
    this.domain = hasDomain ? defaultDomain(resource, zone) : undefined;
    this.instances = resource.spec.instances ?? defaultInstances ?? 1;
    this.#limits = limits;
  }

  get id(): string {
    return this.resource.metadata.name;
  }

  /** RFC 3339, in whole seconds. */
  get createdAt(): string {
    return this.resource.metadata.creationTimestamp ?? "";
  }

  /** Which one it is: its name may be given again after it was deleted. */
  get identity(): { organizationId: string; projectId: string; projectUid: string } {
    const { organizationId, id: projectId } = this;
    return { organizationId, projectId, projectUid: this.resource.metadata.uid ?? "" };
  }

  /** Its entry in the list. */
  get item(): ProjectItem {
    this.#item ??= projectItem(this.resource);
    return this.#item;
  }

  get customDomainSetup(): CustomDomainSetup[] {
    return customDomainSetup(this.resource, this.organizationId, this.domain ?? "");
  }

  /** The answer of the single read, serialised, as callers see it who have these permissions of the project beside reading it. */
  json({ logs = false, metrics = false }: { logs?: boolean; metrics?: boolean } = {}): string {
    const { lastTermination, deployments: [newest] = [], requestScaling } = this.resource.status ?? {};
    const hasLines = lastTermination?.lastLines !== undefined || newest?.preDeploy?.lastLines !== undefined;
    const shown = { withLogs: logs && hasLines, withMetrics: metrics && requestScaling !== undefined };
    const key = JSON.stringify(shown);
    const json = this.#json.get(key) ?? this.#serialize(shown);
    this.#json.set(key, json);
    return json;
  }

  #serialize(shown: { withLogs: boolean; withMetrics: boolean }): string {
    return JSON.stringify({
      status: "success",
      data: projectData(this.resource, {
        domain: this.domain,
        updatedAt: this.updatedAt,
        limits: this.#limits,
        instances: this.instances,
        customDomainSetup: this.customDomainSetup,
        ...shown,
      }),
    });
  }
}

/** @throws Failure 400 for a project of another type */
export function requireType({ resource: { spec } }: ApiProject, types: readonly ProjectType[]): void {
  if (!types.includes(spec.type)) {
    throw failures.projectTypeMismatch(spec.type, types);
  }
}

/** @throws Failure 400 for a project of a type that never has this field */
export function requireTypeWith(project: ApiProject, field: TypedField): void {
  requireType(project, typesWith(field));
}

/** Those that run a container of the user's own. */
export const applicationTypes: readonly ProjectType[] = ["http", "job", "worker"];

interface ManagedFieldsEntry {
  manager?: string;
  time?: string;
  fieldsV1?: Record<string, unknown>;
}

/** They record the source's revision in the spec, and convert what earlier versions wrote: the desired state stays. */
const OPERATOR: readonly (string | undefined)[] = [fieldManagers.project, fieldManagers.build];

/**
 * When the spec was last changed: the newest `managedFields` entry that owns part of it and is not the operator's, or
 * `spec.updatedAt`, since Kubernetes records no time for a field that was only removed. Falls back to the creation.
 * @returns RFC 3339 with milliseconds, so that moments compare as text
 */
export function specUpdatedAt(project: Pick<Project, "metadata" | "spec">): string {
  const { metadata } = project;
  const entries = ((metadata as KubernetesObject["metadata"])?.managedFields ?? []) as ManagedFieldsEntry[];
  const changes = entries
    .filter(({ manager, fieldsV1 }) => fieldsV1?.["f:spec"] !== undefined && !OPERATOR.includes(manager))
    .map((entry) => entry.time);
  return [metadata.creationTimestamp, withFormerState(project).updatedAt, ...changes]
    .map(inMilliseconds)
    .reduce((latest, time) => (time > latest ? time : latest), "");
}

function inMilliseconds(moment: unknown): string {
  const time = new Date(typeof moment === "string" ? moment : Number.NaN);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}
