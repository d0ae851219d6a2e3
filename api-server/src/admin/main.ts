import { openAdminContext } from "./context.ts";
import { runAdminCommand } from "./program.ts";

/** One admin command in a process of its own: `node api-server/src/admin/main.ts ...`. */

try {
  const { close, ...context } = openAdminContext(process.env);
  try {
    const { exitCode, stdout, stderr } = await runAdminCommand(process.argv.slice(2), {
      ...context,
      progress: (line) => process.stderr.write(`${line}\n`),
    });
    process.stderr.write(stderr);
    process.stdout.write(stdout);
    process.exitCode = exitCode;
  } finally {
    await close();
  }
} catch (error) {
  console.error(`slipway: ${(error as Error).message}`);
  process.exitCode = 1;
}
