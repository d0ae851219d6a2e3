/** Attackers as processes of the lowest priority. */
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { spawnNice } from "../../hack/lib/nice.ts";
import type { Answers, Attack, Target } from "./attack.ts";

/** An attack that is prepared and waits. */
export interface Attacker {
  readonly attack: Attack;
  /** Runs it to its end. */
  run(): Promise<Answers>;
  /** Resolves once it has removed what it made, and its process has ended. */
  ended(): Promise<void>;
}

const SECOND_MS = 1_000;
/** In which an attack must have removed what it made. */
const CLEAN_MS = 120_000;

/** Starts a process for the attack and waits until it has prepared. @throws with what it wrote when it ended early */
export async function startAttacker(attack: Attack, target: Target): Promise<Attacker> {
  const program = join(import.meta.dirname, "attacker.ts");
  const child = spawnNice(process.execPath, [program, attack.name]);
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = `${errors}${chunk.toString("utf8")}`.slice(-2_000);
  });
  const exit = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const next = await lines.next();
    if (next.done === true) {
      throw new Error(`the attack ${attack.name} ended early: ${errors}`);
    }
    return next.value;
  };
  child.stdin.write(`${JSON.stringify(target)}\n`);
  await line();
  return {
    attack,
    async run() {
      const timer = endAfter(child, attack.seconds * SECOND_MS + CLEAN_MS);
      void exit.then(() => clearTimeout(timer));
      child.stdin.write("go\n");
      return JSON.parse(await line()) as Answers;
    },
    ended: () => exit,
  };
}

const endAfter = (child: ChildProcess, milliseconds: number): NodeJS.Timeout =>
  setTimeout(() => child.kill("SIGKILL"), milliseconds);
