import {
  type EnvironmentVariable,
  findCycle,
  findReferenced,
  hasReferenceSyntax,
  mayRefer,
  membersOf,
  type Project,
  type ProjectType,
  parseValue,
  type Reference,
  readReference,
  referenceText,
  secretMembers,
} from "@slipway/crds";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";

/** Checks the references of variables, and binds each to the project that it leads to. Pure; `docs/references.md` has the rules. */

/** Id of the project by reference, such as `shop-db.password`. */
export type BoundReferences = ReadonlyMap<string, string>;

/** References of one project, each occurrence counted: a value may become that much longer. */
export const MAX_REFERENCES = 100;

export interface Referrer {
  type: ProjectType;
  grants: Principal["grants"];
  /** The project, where it exists already. Its references stay bound, whatever the caller may read. */
  self?: Pick<Project, "metadata" | "spec">;
}

/** Whether the variables of a project of this type have anything to check. */
export function needsBinding(variables: readonly EnvironmentVariable[], type: ProjectType): boolean {
  return mayRefer(type) && variables.some(({ value }) => hasReferenceSyntax(value));
}

/**
 * @param projects those of the organization
 * @returns undefined where every value is literal
 * @throws Failure 400 `REFERENCE_…` that names each broken reference by its path, 403 for one whose password the caller may not have
 */
export function bindReferences(
  variables: readonly EnvironmentVariable[],
  referrer: Referrer,
  projects: readonly Project[],
): BoundReferences | undefined {
  if (!needsBinding(variables, referrer.type)) {
    return undefined;
  }
  const parts = variables.flatMap(({ name, value }) =>
    hasReferenceSyntax(value) ? parseValue(value).map((part) => ({ name, part })) : [],
  );
  if (parts.filter(({ part }) => !("text" in part)).length > MAX_REFERENCES) {
    const message = `must not have more than ${MAX_REFERENCES} references together`;
    throw failures.validation([{ field: "envs", code: "REFERENCE_LIMIT_EXCEEDED", message }]);
  }
  const living = projects.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const finder = new TargetFinder(referrer, living);
  const bound = new Map<string, string>();
  const errors: FieldError[] = [];
  for (const { name, part } of parts) {
    if ("broken" in part) {
      errors.push(broken(name, part.broken));
    } else if ("reference" in part) {
      const text = referenceText(part.reference);
      const target = finder.find(part.reference);
      if ("code" in target) {
        errors.push({ ...target, field: pathOf(name, text) });
      } else {
        bound.set(text, target.id);
        const cycle = finder.cycleThrough(target.id);
        errors.push(...(cycle === undefined ? [] : [{ ...cycle, field: pathOf(name, text) }]));
      }
    }
  }
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  return bound;
}

/** `envs.DATABASE_URL -> shop-db.password`. */
const pathOf = (variable: string, reference: string): string => `envs.${variable} -> ${reference}`;

const broken = (variable: string, text: string): FieldError => ({
  field: pathOf(variable, text),
  code: "REFERENCE_INVALID",
  message: `a reference reads \${project:NAME.MEMBER}; for the text itself write $\${project:`,
});

type Refusal = Required<Pick<FieldError, "code" | "message">>;

class TargetFinder {
  readonly #referrer: Referrer;
  readonly #living: readonly Project[];
  readonly #byId: ReadonlyMap<string, Project>;
  readonly #readable: readonly Project[];
  /** What the project has by now, and what its projects' texts are bound to. */
  readonly #kept: ReadonlyMap<string, Project>;
  readonly #bound: ReadonlyMap<string, Project>;
  readonly #cycles = new Map<string, Refusal | undefined>();

  constructor(referrer: Referrer, living: readonly Project[]) {
    this.#referrer = referrer;
    this.#living = living;
    this.#byId = new Map(living.map((project) => [project.metadata.name, project]));
    this.#readable = living.filter(({ metadata }) =>
      referrer.grants.onProject("project.read", metadata.name),
    );
    const present = referrer.self?.spec.envsFrom?.flatMap(({ references = [] }) => references) ?? [];
    const bound = present.flatMap(({ reference, project = "" }) => {
      const target = this.#byId.get(project);
      return target ? [{ reference, target }] : [];
    });
    this.#kept = withOneTarget(bound, (reference) => reference);
    this.#bound = withOneTarget(bound, (reference) => readReference(reference).project);
  }

  /** The project of a reference that the caller may make. @throws Failure 403 */
  find(reference: Reference): { id: string } | Refusal {
    const kept = this.#kept.get(referenceText(reference));
    const target = kept ?? this.#targetOf(reference.project);
    if ("code" in target) {
      return target;
    }
    const { metadata, spec } = target;
    const members: readonly string[] = membersOf(spec.type);
    if (!members.includes(reference.member)) {
      const offered = members.length === 0 ? "nothing" : members.join(", ");
      return {
        code: "REFERENCE_MEMBER_UNKNOWN",
        message: `a project of type ${spec.type} offers ${offered}`,
      };
    }
    const isSecret = (secretMembers as readonly string[]).includes(reference.member);
    const mayHave = this.#referrer.grants.onProject("database.credentials.renew", metadata.name);
    if (isSecret && !kept && !mayHave) {
      throw failures.projectPermission("database.credentials.renew", metadata.name);
    }
    return { id: metadata.name };
  }

  /** For what is not kept. A project that the caller may not read is as one that does not exist. */
  #targetOf(text: string): Project | Refusal {
    const bound = this.#bound.get(text);
    if (bound && this.#readable.includes(bound)) {
      return bound;
    }
    const { found, ambiguous } = findReferenced(text, this.#readable);
    if (ambiguous) {
      const message = `several projects have this name, use an id: ${ambiguous.join(", ")}`;
      return { code: "REFERENCE_AMBIGUOUS", message };
    }
    return found ?? { code: "REFERENCE_UNKNOWN", message: `the organization has no project ${text}` };
  }

  /** {@link #refuseCycle}, once for each target. */
  cycleThrough(target: string): Refusal | undefined {
    if (!this.#cycles.has(target)) {
      this.#cycles.set(target, this.#refuseCycle(target));
    }
    return this.#cycles.get(target);
  }

  /** Refuses a target whose own references lead back to the project. */
  #refuseCycle(target: string): Refusal | undefined {
    const self = this.#referrer.self?.metadata.name;
    const cycle =
      self === undefined
        ? undefined
        : findCycle(self, (id) => (id === self ? [target] : this.#targetsOf(id)));
    return (
      cycle && {
        code: "REFERENCE_CYCLE",
        message: `the reference leads back to the project: ${cycle.map((id) => this.#nameOf(id)).join(" -> ")}`,
      }
    );
  }

  #targetsOf(id: string): string[] {
    const references = this.#byId.get(id)?.spec.envsFrom?.flatMap(({ references = [] }) => references) ?? [];
    return references.flatMap(({ reference, project }) => {
      const { found } = findReferenced(project ?? readReference(reference).project, this.#living);
      return found ? [found.metadata.name] : [];
    });
  }

  #nameOf(id: string): string {
    return this.#referrer.grants.onProject("project.read", id)
      ? (this.#byId.get(id)?.spec.name ?? id)
      : "another project";
  }
}

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
