import { CliError } from "./command.ts";
import { withDefaults } from "./creation.ts";
import type { Variable } from "./dotenv.ts";

/** Files that describe several projects. Pure. */

export interface DescribedProject {
  readonly name: string;
  readonly plan?: string;
  readonly payment_mode?: string;
  readonly description?: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Undefined where the file says nothing of variables: those that there are stay. */
  readonly envs?: readonly Variable[];
}

const FIELDS: readonly string[] = ["plan", "payment_mode", "description", "config"];

/** What a file has, in the order of its references: a project comes after those that its variables refer to. @throws CliError */
export function readDescription(value: unknown): DescribedProject[] {
  const { projects, ...others } = objectOf(value, "the file");
  const [other] = Object.keys(others);
  if (other !== undefined) {
    throw new CliError(`the file has a field ${other}: it may have projects alone`);
  }
  const described = Object.entries(objectOf(projects, "projects")).map(([name, body]) =>
    readProject(name, body),
  );
  return inOrder(described);
}

function readProject(name: string, body: unknown): DescribedProject {
  const { config: given = {}, ...fields } = objectOf(body, `projects.${name}`);
  const other = Object.keys(fields).find((field) => !FIELDS.includes(field));
  if (other !== undefined) {
    throw new CliError(`projects.${name} has a field ${other}: it may have ${FIELDS.join(", ")}`);
  }
  const { envs, image, ...config } = objectOf(given, `projects.${name}.config`);
  return {
    ...(fields as Pick<DescribedProject, "plan" | "payment_mode" | "description">),
    name,
    // A public image may be written as its reference alone.
    config: {
      ...config,
      ...(image === undefined
        ? {}
        : { image: typeof image === "string" ? { url: image, is_public: true } : image }),
    },
    ...(envs === undefined ? {} : { envs: readEnvs(envs, name) }),
  };
}

/** A list of `name` and `value` as in the API, or a map. */
function readEnvs(envs: unknown, name: string): Variable[] {
  if (Array.isArray(envs)) {
    return envs.map((each) => {
      const { name: variable, value } = objectOf(each, `a variable of ${name}`);
      return { name: String(variable), value: String(value) };
    });
  }
  const map = objectOf(envs, `projects.${name}.config.envs`);
  return Object.entries(map).map(([variable, value]) => ({ name: variable, value: String(value) }));
}

function objectOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new CliError(`${what} is to be an object of fields`);
  }
  return value as Record<string, unknown>;
}

/** Names of projects that variables refer to: `${project:NAME.MEMBER}`, and not `$${project:`. */
export function referencesOf(envs: readonly Variable[]): string[] {
  return envs.flatMap(({ value }) =>
    [...value.matchAll(/(\$+)\{project:([^.}]+)\./g)]
      .filter(([, dollars = ""]) => dollars.length % 2 === 1)
      .map(([, , name = ""]) => name),
  );
}

function inOrder(projects: readonly DescribedProject[]): DescribedProject[] {
  const ordered: DescribedProject[] = [];
  const visit = (project: DescribedProject, path: readonly string[]): void => {
    if (path.includes(project.name)) {
      throw new CliError(`projects refer to one another: ${[...path, project.name].join(" → ")}`);
    }
    if (ordered.includes(project)) {
      return;
    }
    for (const name of referencesOf(project.envs ?? [])) {
      const target = projects.find((each) => each.name === name);
      if (target !== undefined && target !== project) {
        visit(target, [...path, project.name]);
      }
    }
    ordered.push(project);
  };
  for (const project of projects) {
    visit(project, []);
  }
  return ordered;
}

/** The body of a described project's creation. */
export function creationOf({ name, envs, config, ...fields }: DescribedProject): Record<string, unknown> {
  return withDefaults({
    plan: "free",
    ...fields,
    name,
    config: { ...config, ...(envs === undefined ? {} : { envs }) },
  });
}
