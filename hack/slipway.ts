/**
 * `npm run --silent slipway -- admin ...` administers the running stack, `-- kubectl ...` runs kubectl on its cluster.
 * Standard output and exit code are the command's own.
 */
import { runAdmin, runKubectl } from "./stack/admin.ts";

const commands: Readonly<Record<string, (args: string[]) => Promise<number>>> = {
  admin: runAdmin,
  kubectl: runKubectl,
};
const [name = "", ...args] = process.argv.slice(2);
const command = commands[name];
if (command === undefined) {
  console.error(`usage: npm run --silent slipway -- ${Object.keys(commands).join("|")} ...`);
  process.exit(2);
}
try {
  process.exitCode = await command(args);
} catch (error) {
  console.error(`slipway: ${(error as Error).message}`);
  process.exitCode = 1;
}
