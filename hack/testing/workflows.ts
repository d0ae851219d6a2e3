/** The workflows of .github, and the commands of this repository that they and the scripts of .ci call. */
import { constants } from "node:fs";
import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { run } from "../lib/exec.ts";
import { root } from "../lib/paths.ts";

export interface Step {
  readonly uses?: string;
  readonly run?: string;
}

export interface Job {
  readonly "timeout-minutes"?: number;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly strategy?: { readonly "fail-fast"?: boolean; readonly matrix?: Record<string, string[]> };
  /** Another workflow, in place of steps. */
  readonly uses?: string;
  readonly steps?: readonly Step[];
}

export interface Workflow {
  readonly file: string;
  readonly text: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly concurrency?: { readonly group: string };
  readonly jobs: Readonly<Record<string, Job>>;
}

/** Every workflow of the repository. */
export async function readWorkflows(): Promise<Workflow[]> {
  const folder = join(root, ".github/workflows");
  const files = (await readdir(folder)).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(folder, file), "utf8");
      return { ...(parse(text) as Omit<Workflow, "file" | "text">), file, text };
    }),
  );
}

/** What the steps of a workflow run. */
export const commandsOf = ({ jobs }: Pick<Workflow, "jobs">): string[] =>
  Object.values(jobs).flatMap(({ steps = [] }) => steps.flatMap((step) => step.run ?? []));

/** The lines of a shell script that start with a script of the repository. */
export const commandsInScript = (text: string): string[] => text.match(/^hack\/\S+\.sh\b.*$/gm) ?? [];

const helps = new Map<string, Promise<string>>();

/** What a script says of itself, asked once. */
function helpOf(script: string): Promise<string> {
  const help = helps.get(script) ?? run(join(root, script), ["--help"]);
  helps.set(script, help);
  return help;
}

const isProgram = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

/**
 * What is wrong with a command, as sentences: it has to be one script of the repository, maybe by sudo, which can be run and whose
 * `--help` names each option, and each stage of `--only`.
 */
export async function problemsOf(command: string): Promise<string[]> {
  const words = command.trim().replace(/^sudo env "PATH=\$PATH" /, "");
  const script = /^(?:hack|\.ci)\/[\w./-]+(?= |$)/.exec(words)?.[0];
  if (script === undefined || /[\n;|&<>`]|\$\(/.test(words)) {
    return [`${command}: is not one script of the repository`];
  }
  if (!(await isProgram(join(root, script)))) {
    return [`${command}: there is no program ${script}`];
  }
  const help = await helpOf(script);
  const isKnown = (word: string) => new RegExp(`(^|[\\s[(])${word}($|[\\s\\])|=,])`, "m").test(help);
  const options = words.match(/(?<=\s)--[\w-]+/g) ?? [];
  const stages = /--only (\S+)/.exec(words)?.[1]?.split(",") ?? [];
  return [...options, ...stages]
    .filter((word) => !isKnown(word))
    .map((word) => `${command}: ${script} --help knows no ${word}`);
}
