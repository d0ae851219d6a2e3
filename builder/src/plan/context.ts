import type { BaseImage } from "../catalog.ts";
import { procfileCommand, startWords } from "./command.ts";
import type { Stage } from "./dockerfile.ts";
import { PlanError, type Tree } from "./input.ts";

/** What a runtime's planner is given. */
export interface Context {
  tree: Tree;
  /** Commands that the client has set. */
  commands: { start?: string; preBuild?: string; build?: string };
  version: string;
  image: BaseImage;
  /** The image of another runtime, for what is compiled with it. @throws PlanError when there is none */
  otherImage(runtime: "node"): BaseImage;
  port: number;
  /** Adds a sentence on what decided. */
  detected(sentence: string): void;
  /** Adds a sentence that the people whose build it is should read. */
  note(sentence: string): void;
}

/** What a runtime's planner makes. */
export interface Planned {
  stages: Stage[];
  start: string[];
}

/** A name of the repository that is in a Dockerfile or a command unquoted. */
export function isSafeName(name: string): boolean {
  return /^[A-Za-z0-9_@][A-Za-z0-9_.@/+-]*$/.test(name) && !name.split("/").includes("..");
}

/**
 * How the application starts: the client's command, the Procfile's, or what the runtime finds in the files.
 * @throws PlanError `START_COMMAND_REQUIRED`
 */
export function chooseStart(
  { tree, commands, detected }: Context,
  otherwise: () => string | string[] | undefined,
): string[] {
  if (commands.start !== undefined) {
    return startWords(commands.start);
  }
  const procfile = procfileCommand(tree.text("Procfile"));
  if (procfile !== undefined) {
    detected("The start command is that of the Procfile.");
    return startWords(procfile);
  }
  const found = otherwise();
  if (found === undefined) {
    throw new PlanError("START_COMMAND_REQUIRED");
  }
  return typeof found === "string" ? startWords(found) : found;
}
