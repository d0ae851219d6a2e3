import { CliError } from "./command.ts";
import type { DescribedProject } from "./description.ts";
import type { Variable } from "./dotenv.ts";
import type { Project } from "./project.ts";

/** What a described project has otherwise than the one that there is. Pure. */

export interface Change {
  readonly project: string;
  readonly action: "create" | "change";
  readonly field: string;
  /** In words; values of variables are in none. */
  readonly from: string;
  readonly to: string;
}

/** Fields of `config` that change by a call of their own. */
const CHANGED: readonly string[] = ["image", "instances", "command", "custom_domains"];
/** Fields that no call changes: another value needs another project. */
const FIXED: readonly string[] = ["type_project", "port", "version", "profile"];

export const creation = ({ name, plan = "free", config }: DescribedProject): Change => ({
  project: name,
  action: "create",
  field: "project",
  from: "",
  to: `${config.type_project ?? "http"}, plan ${plan}`,
});

/** The changes that lead to what is described; none where it is as it is described. @throws CliError for one that is not possible */
export function differences(described: DescribedProject, live: Project, envs: readonly Variable[]): Change[] {
  const { name, config } = described;
  const now = live as unknown as Readonly<Record<string, unknown>>;
  for (const field of FIXED) {
    if (config[field] !== undefined && now[field] !== undefined && config[field] !== now[field]) {
      throw new CliError(
        `${field} of ${name} is ${now[field]} and cannot become ${config[field]}: describe a project of another name`,
      );
    }
  }
  const change = (field: string, from: unknown, to: unknown): Change[] =>
    to === undefined || same(from, to)
      ? []
      : [{ project: name, action: "change", field, from: textOf(from), to: textOf(to) }];
  return [
    ...change("plan", live.plan, described.plan),
    ...change("description", live.description, described.description),
    ...CHANGED.flatMap((field) =>
      change(field, comparable(field, now[field]), comparable(field, config[field])),
    ),
    ...(described.envs === undefined ? [] : variableChanges(name, envs, described.envs)),
  ];
}

/** Of an image its reference: credentials are not read. */
const comparable = (field: string, value: unknown): unknown =>
  field === "image" ? (value as { url?: string } | undefined)?.url : value;

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
const textOf = (value: unknown): string =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

function variableChanges(project: string, before: readonly Variable[], after: readonly Variable[]): Change[] {
  const valueIn = (all: readonly Variable[], name: string) => all.find((one) => one.name === name)?.value;
  const names = [...new Set([...before, ...after].map(({ name }) => name))];
  return names
    .filter((name) => valueIn(before, name) !== valueIn(after, name))
    .map((name) => {
      const state = (all: readonly Variable[]) => (valueIn(all, name) === undefined ? "" : "a value");
      const to = state(before) !== "" && state(after) !== "" ? "another value" : state(after);
      return { project, action: "change", field: `variable ${name}`, from: state(before), to };
    });
}
