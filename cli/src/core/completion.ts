import type { CommandDefinition } from "./command.ts";

/** Completion of shells, from the commands' definitions. Pure. */

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** Options of every command, as words. */
const GLOBAL: readonly string[] = ["--output", "--profile", "--url", "--yes", "--help"];

const wordsOf = ({ options = [] }: CommandDefinition): string[] => [
  ...options.flatMap(({ flags }) => flags.match(/--[\w-]+/g) ?? []),
  ...GLOBAL,
];

/** Every command that runs, with its words: `env list`. */
export const leaves = (definitions: readonly CommandDefinition[], path: readonly string[] = []) =>
  definitions.flatMap((definition): { path: string[]; definition: CommandDefinition }[] => {
    const own = [...path, definition.name];
    return definition.subcommands === undefined
      ? [{ path: own, definition }]
      : leaves(definition.subcommands, own);
  });

function bash(definitions: readonly CommandDefinition[]): string {
  const cases = definitions.flatMap(({ name, subcommands }) =>
    subcommands === undefined
      ? []
      : [`    "${name}") words="${subcommands.map((each) => each.name).join(" ")}" ;;`],
  );
  const options = leaves(definitions).map(
    ({ path, definition }) => `    "${path.join(" ")}"*) words="${wordsOf(definition).join(" ")}" ;;`,
  );
  return `_slipway() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words="" line
  line="\${COMP_WORDS[*]:1:COMP_CWORD-1}"
  case "$line" in
    "") words="${definitions.map(({ name }) => name).join(" ")}" ;;
${[...cases, ...options].join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _slipway slipway
`;
}

const zsh = (definitions: readonly CommandDefinition[]): string =>
  `#compdef slipway\nautoload -Uz bashcompinit && bashcompinit\n${bash(definitions)}`;

function fish(definitions: readonly CommandDefinition[]): string {
  const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const commands = definitions.map(
    ({ name, summary }) => `complete -c slipway -f -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
  );
  const nested = definitions.flatMap(({ name, subcommands = [] }) =>
    subcommands.map(
      (each) =>
        `complete -c slipway -f -n '__fish_seen_subcommand_from ${name}' -a ${each.name} -d ${quoted(each.summary)}`,
    ),
  );
  const options = leaves(definitions).flatMap(({ path, definition }) =>
    wordsOf(definition).map(
      (word) => `complete -c slipway -n '__fish_seen_subcommand_from ${path.at(-1)}' -l ${word.slice(2)}`,
    ),
  );
  return `${[...commands, ...nested, ...new Set(options)].join("\n")}\n`;
}

export const completionScript = (shell: Shell, definitions: readonly CommandDefinition[]): string =>
  ({ bash, zsh, fish })[shell](definitions);
