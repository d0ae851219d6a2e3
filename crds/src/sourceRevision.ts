import { createHash } from "node:crypto";
import { annotations } from "./names.ts";
import type { Project, ProjectSpec } from "./project/index.ts";

/** How often the source of a project and its settings were changed. Pure. */

type Noted = Pick<Project, "metadata" | "spec">;

/** What a revision is of. */
function sourceHash({ source, build, github }: ProjectSpec): string {
  const content = JSON.stringify([source, build, github], (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash("sha256").update(content).digest("hex").slice(0, 16);
}

function noteOf({ metadata }: Pick<Noted, "metadata">): { revision: number; hash: string } | undefined {
  const note = metadata.annotations?.[annotations.sourceRevision] ?? "";
  const [, revision, hash] = /^([0-9]{1,15}):([0-9a-f]{16})$/.exec(note) ?? [];
  return revision === undefined || hash === undefined ? undefined : { revision: Number(revision), hash };
}

/** How the note stands to the source: there is none, it is of another source, or of this one. */
export function sourceNoted(project: Noted): "never" | "before" | "now" {
  const note = noteOf(project);
  if (note === undefined) return "never";
  return note.hash === sourceHash(project.spec) ? "now" : "before";
}

/**
 * The revision of a project's source: 0 before there was one, 1 for the first, and greater after each change. What others than
 * `/v1` have changed since the last note counts as one change.
 */
export function sourceRevision(project: Noted): number {
  const { spec } = project;
  const note = noteOf(project);
  if (note === undefined) return spec.source === undefined && spec.github === undefined ? 0 : 1;
  return note.revision + (note.hash === sourceHash(spec) ? 0 : 1);
}

/** The annotation that goes with the wanted spec. */
export function revisionNote(wanted: ProjectSpec, live: Noted): Record<string, string> {
  const before = sourceRevision(live);
  const revision = sourceHash(wanted) === sourceHash(live.spec) ? before : before + 1;
  return { [annotations.sourceRevision]: `${revision}:${sourceHash(wanted)}` };
}
