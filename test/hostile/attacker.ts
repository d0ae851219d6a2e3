/**
 * One attack in a process of its own: `node test/hostile/attacker.ts NAME`. Reads a line of JSON with its target, prepares,
 * prints `ready`, waits for another line, attacks, and prints its answers as JSON.
 */
import { createInterface } from "node:readline";
import type { Target } from "./attack.ts";
import { attackNamed } from "./attacks/index.ts";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const attack = attackNamed(process.argv[2] ?? "");
const target = JSON.parse(String((await lines.next()).value)) as Target;
const prepared = await attack.prepare(target);
try {
  console.log("ready");
  await lines.next();
  console.log(JSON.stringify(await prepared.run(AbortSignal.timeout(attack.seconds * 1_000))));
} finally {
  await prepared.clean?.();
}
process.exit(0);
