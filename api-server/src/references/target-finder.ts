import {
  type DeclaredReference,
  findReferenced,
  membersOf,
  type Project,
  type ProjectType,
  type Reference,
  readReference,
  referenceText,
  secretMembers,
} from "@slipway/crds";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import { ProjectIndex, wayBack } from "./reference-graph.ts";

export interface Referrer {
  type: ProjectType;
  grants: Principal["grants"];
  /** The project, where it exists already. Its references stay bound, whatever the caller may read. */
  self?: Pick<Project, "metadata" | "spec">;
}

export type Refusal = Required<Pick<FieldError, "code" | "message">>;

/** Finds the projects that a caller may have one project refer to. Pure. */
export class TargetFinder {
  readonly #referrer: Referrer;
  readonly #living: ProjectIndex;
  /** What the project has by now, bound or not. */
  readonly #present: ReadonlySet<string>;
  /** What of it is bound to one project, by reference and by that's text. */
  readonly #kept: ReadonlyMap<string, Project>;
  readonly #bound: ReadonlyMap<string, Project>;
  #stepsToSelf: ReadonlyMap<string, string> | undefined;

  /** @param projects those of the organization */
  constructor(referrer: Referrer, projects: readonly Project[]) {
    this.#referrer = referrer;
    this.#living = new ProjectIndex(
      projects.filter(({ metadata }) => metadata.deletionTimestamp === undefined),
    );
    const present = referrer.self?.spec.envsFrom?.flatMap(({ references = [] }) => references) ?? [];
    this.#present = new Set(present.map(declaredKey));
    const bound = present.flatMap(({ reference, project = "" }) => {
      const target = this.#living.get(project);
      return target ? [{ reference, target }] : [];
    });
    this.#kept = withOneTarget(bound, (reference) => reference);
    this.#bound = withOneTarget(bound, (reference) => readReference(reference).project);
  }

  /** Whether the project has exactly this reference, bound to the same project. */
  has(declared: DeclaredReference): boolean {
    return this.#present.has(declaredKey(declared));
  }

  /** The project of a reference that the caller may write. @throws Failure 403 */
  find(reference: Reference): { id: string } | Refusal {
    const kept = this.#kept.get(referenceText(reference));
    const target = kept ?? this.#targetOf(reference.project);
    return this.#admit(reference.member, target, kept !== undefined);
  }

  /** The same for one that the project lacks, by its id where it has one. @throws Failure 403 */
  findDeclared({ reference, project: id }: DeclaredReference): { id: string } | Refusal {
    const { project: text, member } = readReference(reference);
    return this.#admit(member, id === undefined ? this.#named(text) : this.#boundTo(id, text), false);
  }

  #admit(member: string, target: Project | Refusal, isKept: boolean): { id: string } | Refusal {
    if ("code" in target) {
      return target;
    }
    const { metadata, spec } = target;
    const members: readonly string[] = membersOf(spec.type);
    if (!members.includes(member)) {
      const offered = members.length === 0 ? "nothing" : members.join(", ");
      return {
        code: "REFERENCE_MEMBER_UNKNOWN",
        message: `a project of type ${spec.type} offers ${offered}`,
      };
    }
    const isSecret = (secretMembers as readonly string[]).includes(member);
    const mayHave = this.#referrer.grants.onProject("database.credentials.renew", metadata.name);
    if (isSecret && !isKept && !mayHave) {
      throw failures.projectPermission("database.credentials.renew", metadata.name);
    }
    return { id: metadata.name };
  }

  /** For what is not kept: what its text is bound to in other references, else what has that id or name. */
  #targetOf(text: string): Project | Refusal {
    const bound = this.#bound.get(text);
    return bound && this.#mayRead(bound.metadata.name) ? bound : this.#named(text);
  }

  /** A project that the caller may not read is as one that does not exist. */
  #boundTo(id: string, text: string): Project | Refusal {
    const bound = this.#living.get(id);
    return bound && this.#mayRead(bound.metadata.name) ? bound : unknown(text);
  }

  /** As {@link #boundTo}. */
  #named(text: string): Project | Refusal {
    const candidates = this.#living.called(text).filter(({ metadata }) => this.#mayRead(metadata.name));
    const { found, ambiguous } = findReferenced(text, candidates);
    if (ambiguous) {
      const message = `several projects have this name, use an id: ${ambiguous.join(", ")}`;
      return { code: "REFERENCE_AMBIGUOUS", message };
    }
    return found ?? unknown(text);
  }

  /** Refuses a target whose own references lead back to the project. */
  cycleThrough(target: string): Refusal | undefined {
    const self = this.#referrer.self?.metadata.name;
    if (self === undefined) {
      return undefined;
    }
    this.#stepsToSelf ??= this.#living.stepsTo(self);
    const cycle = wayBack(self, target, this.#stepsToSelf);
    return (
      cycle && {
        code: "REFERENCE_CYCLE",
        message: `the reference leads back to the project: ${cycle.map((id) => this.#nameOf(id)).join(" -> ")}`,
      }
    );
  }

  #mayRead(id: string): boolean {
    return this.#referrer.grants.onProject("project.read", id);
  }

  #nameOf(id: string): string {
    return this.#mayRead(id) ? (this.#living.get(id)?.spec.name ?? id) : "another project";
  }
}

const declaredKey = ({ reference, project = "" }: DeclaredReference): string => `${reference} ${project}`;

const unknown = (text: string): Refusal => ({
  code: "REFERENCE_UNKNOWN",
  message: `the organization has no project ${text}`,
});

/** The target of each key that leads to one only: between several nothing says which one is meant. */
function withOneTarget(
  bound: readonly { reference: string; target: Project }[],
  keyOf: (reference: string) => string,
): Map<string, Project> {
  const found = new Map<string, Project>();
  const several = new Set<string>();
  for (const { reference, target } of bound) {
    const key = keyOf(reference);
    if ((found.get(key) ?? target) !== target) {
      several.add(key);
    }
    found.set(key, target);
  }
  for (const key of several) {
    found.delete(key);
  }
  return found;
}
