import { type ProjectType, type TypedField, typesWith } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "./api-project.ts";

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
export const applicationTypes: readonly ProjectType[] = ["http", "job"];
