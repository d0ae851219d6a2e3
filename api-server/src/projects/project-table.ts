import type { ApiProject } from "./api-project.ts";
import { phaseOf } from "./view.ts";

/** What the list filters by; everything unless given. */
export interface ProjectFilter {
  type?: string | undefined;
  profile?: string | undefined;
  status?: string | undefined;
  /** Part of the name or of the description, in any case. */
  search?: string | undefined;
}

/** Between texts. No search contains it: an address with a NUL is rewritten before it is read. */
const SEPARATOR = "\0";

/**
 * Projects in an order, with what the list filters by in columns. A filter over thousands of them reads each column from one end to the
 * other: going through the projects themselves took ten times as long, nearly all of it waiting for memory.
 */
export class ProjectTable {
  readonly #projects: ApiProject[] = [];
  readonly #types: string[] = [];
  readonly #profiles: (string | undefined)[] = [];
  readonly #statuses: string[] = [];
  readonly #texts: string[] = [];
  /** All texts in one, and where each begins; made at the first search after a change. */
  #searchable: { text: string; starts: Uint32Array } | undefined;

  /** The projects, in order. Never change it: it is shared. */
  get projects(): readonly ApiProject[] {
    return this.#projects;
  }

  insert(row: number, project: ApiProject): void {
    const { spec } = project.resource;
    this.#projects.splice(row, 0, project);
    this.#types.splice(row, 0, spec.type);
    this.#profiles.splice(row, 0, spec.profile);
    this.#statuses.splice(row, 0, phaseOf(project.resource));
    this.#texts.splice(row, 0, [spec.name, spec.description ?? "", ""].join(SEPARATOR).toLowerCase());
    this.#searchable = undefined;
  }

  remove(row: number): void {
    const columns = [this.#projects, this.#types, this.#profiles, this.#statuses, this.#texts];
    for (const column of columns) {
      column.splice(row, 1);
    }
    this.#searchable = undefined;
  }

  /** The rows that a filter leaves, in order; undefined when that is all of them. */
  rows({ type, profile, status, search }: ProjectFilter): number[] | undefined {
    let rows = search === undefined ? undefined : this.#rowsWith(search.toLowerCase());
    rows = keep(rows, this.#types, type);
    rows = keep(rows, this.#profiles, profile);
    return keep(rows, this.#statuses, status);
  }

  #rowsWith(search: string): number[] {
    const { text, starts } = this.#searchableText();
    const rows: number[] = [];
    let row = 0;
    let at = text.indexOf(search);
    while (at >= 0) {
      while (row + 1 < starts.length && (starts[row + 1] as number) <= at) {
        row += 1;
      }
      rows.push(row);
      const next = starts[row + 1];
      at = next === undefined ? -1 : text.indexOf(search, next);
    }
    return rows;
  }

  #searchableText(): { text: string; starts: Uint32Array } {
    if (this.#searchable === undefined) {
      const starts = new Uint32Array(this.#texts.length);
      let length = 0;
      this.#texts.forEach((text, row) => {
        starts[row] = length;
        length += text.length;
      });
      this.#searchable = { text: this.#texts.join(""), starts };
    }
    return this.#searchable;
  }
}

/** Of the rows (all of them when undefined) those whose value in a column is the requested one. */
function keep<Value>(
  rows: number[] | undefined,
  column: readonly Value[],
  requested: Value | undefined,
): number[] | undefined {
  if (requested === undefined) {
    return rows;
  }
  if (rows !== undefined) {
    return rows.filter((row) => column[row] === requested);
  }
  const kept: number[] = [];
  for (let row = 0; row < column.length; row += 1) {
    if (column[row] === requested) {
      kept.push(row);
    }
  }
  return kept;
}
