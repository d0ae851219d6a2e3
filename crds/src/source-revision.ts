import { createHash } from "node:crypto";
import { withFormerState } from "./former-annotations.ts";
import type { Project, ProjectSpec } from "./project/index.ts";
import type { SourceRevision } from "./project/parts.ts";

/** How often the source of a project and its settings were changed. Pure. */

type Sourced = Pick<Project, "metadata" | "spec">;

/** What a revision is of. */
function sourceHash({ source, build, github }: ProjectSpec): string {
  const content = JSON.stringify([source, build, github], (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash("sha256").update(content).digest("hex").slice(0, 16);
}

/** Whether `spec.sourceRevision` is of the spec's source: there is none, it is of an earlier source, or of this one. */
export function recordedSource(project: Sourced): "never" | "before" | "now" {
  const { sourceRevision: recorded } = withFormerState(project);
  if (recorded === undefined) {
    return "never";
  }
  return recorded.hash === sourceHash(project.spec) ? "now" : "before";
}

/**
 * The revision of a project's source: 0 before there was one, 1 for the first, and greater after each change. What others than
 * `/v1` have changed since the revision was recorded counts as one change.
 */
export function sourceRevision(project: Sourced): number {
  const { source, github, sourceRevision: recorded } = withFormerState(project);
  if (recorded === undefined) {
    return source === undefined && github === undefined ? 0 : 1;
  }
  return recorded.number + (recordedSource(project) === "now" ? 0 : 1);
}

/** What `spec.sourceRevision` has to be in the wanted spec. */
export function nextSourceRevision(wanted: ProjectSpec, live: Sourced): SourceRevision {
  const before = sourceRevision(live);
  const hash = sourceHash(wanted);
  return { number: hash === sourceHash(live.spec) ? before : before + 1, hash };
}
