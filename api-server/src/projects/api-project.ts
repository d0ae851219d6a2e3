import { defaultDomain, organizationOfNamespace, type Project } from "@slipway/crds";
import { type ProjectItem, projectData, projectItem } from "./view.ts";

/**
 * One state of a project, with what `/v1` says about it worked out once: the store replaces the object when it
 * changes, so nothing here goes stale.
 */
export class ApiProject {
  readonly resource: Project;
  readonly organizationId: string;
  /** RFC 3339; when the spec was last changed. */
  readonly updatedAt: string;
  /** The default domain of a public HTTP project. */
  readonly domain: string | undefined;
  #item: ProjectItem | undefined;
  #json: string | undefined;

  constructor(resource: Project, updatedAt: string, zone: string) {
    this.resource = resource;
    this.organizationId = organizationOfNamespace(resource.metadata.namespace ?? "") ?? "";
    this.updatedAt = updatedAt;
    const hasDomain = resource.spec.type === "http" && resource.spec.exposure === "public";
    this.domain = hasDomain ? (resource.status?.domain ?? defaultDomain(resource, zone)) : undefined;
  }

  get id(): string {
    return this.resource.metadata.name;
  }

  /** Its entry in the list. */
  get item(): ProjectItem {
    this.#item ??= projectItem(this.resource);
    return this.#item;
  }

  /** The whole answer of the single read, serialised. */
  get json(): string {
    this.#json ??= JSON.stringify({
      status: "success",
      data: projectData(this.resource, this.domain, this.updatedAt),
    });
    return this.#json;
  }
}
