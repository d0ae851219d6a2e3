import {
  type DeclaredReference,
  type EnvironmentVariable,
  type EnvSource,
  hasReferenceSyntax,
  mayRefer,
  type Project,
  type ProjectType,
  parseValue,
  REFERENCES_MAX,
  referenceText,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import { type Referrer, type Refusal, TargetFinder } from "./target-finder.ts";

/** Checks the references of variables, and binds each to the project that it leads to. Pure; `docs/references.md` has the rules. */

/** Id of the project by reference, such as `shop-db.password`. */
export type BoundReferences = ReadonlyMap<string, string>;

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
  if (parts.filter(({ part }) => !("text" in part)).length > REFERENCES_MAX) {
    const message = `must not have more than ${REFERENCES_MAX} references together`;
    throw failures.validation([{ field: "envs", code: "REFERENCE_LIMIT_EXCEEDED", message }]);
  }
  const finder = new TargetFinder(referrer, projects);
  const bound = new Map<string, string>();
  const errors: FieldError[] = [];
  for (const { name, part } of parts) {
    if ("broken" in part) {
      errors.push(broken(name, part.broken));
    } else if ("reference" in part) {
      const text = referenceText(part.reference);
      const target = finder.find(part.reference);
      errors.push(...errorsOf(target, finder, pathOf(name, text)));
      if ("id" in target) {
        bound.set(text, target.id);
      }
    }
  }
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  return bound;
}

/**
 * Binds the references that Secrets of an earlier deployment declare. Those that the project has now stay as they are; the others
 * need of the caller what writing them would need.
 * @throws Failure 400 that names each by `deployment_id`, 403, both as {@link bindReferences}
 */
export function bindSources(
  sources: readonly EnvSource[],
  referrer: Referrer,
  projects: readonly Project[],
): EnvSource[] {
  if (!mayRefer(referrer.type) || sources.every(({ references }) => references === undefined)) {
    return [...sources];
  }
  const finder = new TargetFinder(referrer, projects);
  const errors: FieldError[] = [];
  const bind = (one: DeclaredReference): DeclaredReference => {
    if (finder.has(one)) {
      return one;
    }
    const target = finder.findDeclared(one);
    errors.push(...errorsOf(target, finder, `deployment_id -> ${one.reference}`));
    return "id" in target ? { ...one, project: target.id } : one;
  };
  const bound = sources.map((source) =>
    source.references === undefined ? source : { ...source, references: source.references.map(bind) },
  );
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  return bound;
}

/** Why a reference is refused: by what it leads to, or since that leads back to the project. */
function errorsOf(target: { id: string } | Refusal, finder: TargetFinder, field: string): FieldError[] {
  const refusal = "code" in target ? target : finder.cycleThrough(target.id);
  return refusal === undefined ? [] : [{ ...refusal, field }];
}

/** `envs.DATABASE_URL -> shop-db.password`. */
const pathOf = (variable: string, reference: string): string => `envs.${variable} -> ${reference}`;

const broken = (variable: string, text: string): FieldError => ({
  field: pathOf(variable, text),
  code: "REFERENCE_INVALID",
  message: `a reference reads \${project:NAME.MEMBER}; for the text itself write $\${project:`,
});
