import type { DomainClaim } from "./domainclaim.ts";
import { FORMER_CONTENDERS, formerAnnotations } from "./names.ts";
import type { Project, ProjectSpec } from "./project/index.ts";
import { projectSpecFields } from "./project/spec-fields.ts";

/** State that earlier versions kept in annotations, as fields. Pure. */

const { rollback, sourceRevision, updatedAt } = projectSpecFields.shape;

type State = Pick<ProjectSpec, "rollback" | "sourceRevision" | "updatedAt">;

/** What the annotations say; what is not as it was written then says nothing, as then. */
function stateOf(annotations: Readonly<Record<string, string>>): State {
  const [at = "", digest] = (annotations[formerAnnotations.rolledBack] ?? "").split(" ");
  const [number, hash] = (annotations[formerAnnotations.sourceRevision] ?? "").split(":");
  return {
    rollback: rollback.safeParse({ at, digest }).data,
    sourceRevision: sourceRevision.safeParse({ number: Number(number || Number.NaN), hash }).data,
    updatedAt: updatedAt.safeParse(annotations[formerAnnotations.updatedAt]).data,
  };
}

/**
 * The spec with the state that earlier versions kept in annotations; a field that is set counts, not the annotation. The same
 * object when there is nothing to convert.
 */
export function withFormerState({ metadata, spec }: Pick<Project, "metadata" | "spec">): ProjectSpec {
  if (!hasFormerState({ metadata })) {
    return spec;
  }
  const state = Object.entries(stateOf(metadata.annotations ?? {})).filter(
    ([, value]) => value !== undefined,
  );
  return { ...Object.fromEntries(state), ...spec };
}

/** Whether a Project has annotations of an earlier version. */
export function hasFormerState({ metadata }: Pick<Project, "metadata">): boolean {
  return Object.values(formerAnnotations).some((name) => metadata.annotations?.[name] !== undefined);
}

/** The merge patch that replaces those annotations with fields, provided that nobody writes meanwhile; undefined without any. */
export function formerStatePatch(project: Pick<Project, "metadata" | "spec">): object | undefined {
  if (!hasFormerState(project)) {
    return undefined;
  }
  const { uid, resourceVersion } = project.metadata;
  const { rollback, sourceRevision, updatedAt } = withFormerState(project);
  const annotations = Object.fromEntries(Object.values(formerAnnotations).map((name) => [name, null]));
  return { metadata: { uid, resourceVersion, annotations }, spec: { rollback, sourceRevision, updatedAt } };
}

/** Organizations that were refused a claim's hostname, the newest first. */
export function contendersOf({ metadata, spec }: Pick<DomainClaim, "metadata" | "spec">): readonly string[] {
  return spec.contenders ?? metadata.annotations?.[FORMER_CONTENDERS]?.split(",") ?? [];
}
