/**
 * References of variables to other projects: `${project:shop-db.password}`. Their syntax, what each type of project offers, and
 * cycles. Pure; `docs/references.md` has the rules for users.
 */

import { connectionString, isDatabaseType } from "./database.ts";
import type { Project } from "./project/index.ts";
import type { ProjectType } from "./project/types.ts";

/** What a reference may name of a database or key-value service. */
export const databaseMembers = [
  "connection_string",
  "host",
  "port",
  "username",
  "password",
  "database",
] as const;
/** What a reference may name of an HTTP project. */
export const httpMembers = ["internal_url", "host", "port"] as const;
export type ReferenceMember = (typeof databaseMembers)[number] | (typeof httpMembers)[number];

/** Members that have a password in them. */
export const secretMembers: readonly ReferenceMember[] = ["connection_string", "password"];

/** Types of projects whose variables may have references. */
export const referringTypes = ["http", "worker", "job"] as const satisfies readonly ProjectType[];

/** Whether references in the variables of such a project are resolved. */
export function mayRefer(type: ProjectType): boolean {
  return (referringTypes as readonly ProjectType[]).includes(type);
}

/** What of a project of this type a reference may name; nothing of workers and jobs. */
export function membersOf(type: ProjectType): readonly ReferenceMember[] {
  return isDatabaseType(type) ? databaseMembers : type === "http" ? httpMembers : [];
}

/** One reference: what follows `${project:`, up to the brace. */
export interface Reference {
  /** Id or name of the project, as it was written. */
  project: string;
  member: string;
}

/** A piece of a value: literal text, a reference, or one whose syntax is broken. */
export type ValuePart = { text: string } | { reference: Reference } | { broken: string };

/** What a reference begins with. */
const MARK = "{project:";
/** What is between the mark and the closing brace. */
const BODY = /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([a-z_]{1,32})$/;

/** Whether a value has anything that {@link parseValue} would not keep as it is. */
export function hasReferenceSyntax(value: string): boolean {
  return value.includes(`$${MARK}`);
}

/**
 * The parts of a value. Of the dollars directly before `{project:` each pair stands for one dollar, and one that is left begins a
 * reference: `$${project:a.host}` is the text `${project:a.host}`. All else is literal.
 */
export function parseValue(value: string): ValuePart[] {
  const parts: ValuePart[] = [];
  let at = 0;
  const text = (piece: string) => {
    const last = parts.at(-1);
    if (piece !== "" && last && "text" in last) {
      last.text += piece;
    } else if (piece !== "") {
      parts.push({ text: piece });
    }
  };
  for (let mark = value.indexOf(MARK); mark >= 0; mark = value.indexOf(MARK, at)) {
    const dollars = dollarsBefore(value, mark, at);
    text(value.slice(at, mark - dollars) + "$".repeat(Math.floor(dollars / 2)));
    const body = mark + MARK.length;
    if (dollars % 2 === 0) {
      text(MARK);
      at = body;
      continue;
    }
    const end = value.indexOf("}", body);
    const [, project, member] = BODY.exec(end < 0 ? "" : value.slice(body, end)) ?? [];
    if (project === undefined || member === undefined) {
      const shown = value.slice(body, end < 0 ? body + 40 : Math.min(end, body + 120));
      parts.push({ broken: `$${MARK}${shown}${end < 0 ? "" : "}"}` });
      at = body;
    } else {
      parts.push({ reference: { project, member } });
      at = end + 1;
    }
  }
  text(value.slice(at));
  return parts;
}

/** How many dollars are directly before a position. A regular expression would take quadratic time on a long run. */
function dollarsBefore(value: string, position: number, from: number): number {
  let start = position;
  while (start > from && value[start - 1] === "$") {
    start -= 1;
  }
  return position - start;
}

/** How a reference is written in the spec and in messages, such as `shop-db.password`. */
export const referenceText = ({ project, member }: Reference): string => `${project}.${member}`;

/** The inverse of {@link referenceText}, of a text that the schema admits. */
export function readReference(text: string): Reference {
  const dot = text.indexOf(".");
  return { project: text.slice(0, dot), member: text.slice(dot + 1) };
}

/** The value with each reference replaced; undefined when one has no value, or is broken. */
export function resolveValue(
  value: string,
  find: (reference: Reference) => string | undefined,
): string | undefined {
  const pieces = parseValue(value).map((part) =>
    "text" in part ? part.text : "reference" in part ? find(part.reference) : undefined,
  );
  return pieces.includes(undefined) ? undefined : pieces.join("");
}

/** Every reference of these values, each once, in the order of its text. */
export function referencesIn(values: Iterable<string>): Reference[] {
  const found = new Map<string, Reference>();
  for (const value of values) {
    for (const part of hasReferenceSyntax(value) ? parseValue(value) : []) {
      if ("reference" in part) {
        found.set(referenceText(part.reference), part.reference);
      }
    }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, reference]) => reference);
}

/** A project as the references of others see it. */
export interface Candidate {
  metadata: { name: string };
  spec: { name: string };
}

/** The project of an id, else the only one of that name; `ambiguous` has the ids where several have it. */
export function findReferenced<P extends Candidate>(
  text: string,
  projects: Iterable<P>,
): { found?: P; ambiguous?: string[] } {
  const named: P[] = [];
  for (const project of projects) {
    if (project.metadata.name === text) {
      return { found: project };
    }
    if (project.spec.name === text) {
      named.push(project);
    }
  }
  return named.length > 1
    ? { ambiguous: named.map(({ metadata }) => metadata.name).sort() }
    : { found: named[0] };
}

/**
 * The shortest way from a project along references back to it, both ends included; undefined when there is none.
 * @param targetsOf ids of the projects that one refers to
 */
export function findCycle(start: string, targetsOf: (id: string) => readonly string[]): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
    for (const target of targetsOf(id)) {
      if (target === start) {
        return wayTo(id, start, cameFrom).concat(start);
      }
      if (!cameFrom.has(target)) {
        cameFrom.set(target, id);
        queue.push(target);
      }
    }
  }
  return undefined;
}

function wayTo(id: string, start: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const way = [id];
  for (let before = id; before !== start; ) {
    before = cameFrom.get(before) ?? start;
    way.unshift(before);
  }
  return way;
}

/** How an organization's own projects reach a database, and log in to it. */
export interface InsideConnection {
  host: string;
  port: number;
  database: string;
  username: string;
  password: string;
}

/** The value of a member of a database. */
export function databaseMember(
  type: ProjectType,
  member: string,
  connection: InsideConnection,
): string | undefined {
  const { host, port, database, username, password } = connection;
  const values: Record<string, string> = { host, port: String(port), database, username, password };
  return member === "connection_string" && isDatabaseType(type)
    ? connectionString(type, connection)
    : values[member];
}

/** The value of a member of an HTTP project: its address within the organization, which it has from its creation on. */
export function httpMember({ metadata }: Pick<Project, "metadata">, member: string): string | undefined {
  const host = `${metadata.name}.${metadata.namespace}.svc`;
  const values: Record<string, string> = { host, port: "80", internal_url: `http://${host}` };
  return values[member];
}
