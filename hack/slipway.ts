/**
 * `npm run --silent slipway -- admin ...`: administers the running stack from the repository's root. Standard output and
 * exit code are the admin command's own.
 */
import { enableCompileCache } from "node:module";

// Most of the command's time would go into reading sources that have not changed.
enableCompileCache();

const [command, ...args] = process.argv.slice(2);
if (command !== "admin") {
  console.error("usage: npm run --silent slipway -- admin COMMAND ...");
  process.exit(2);
}
try {
  const { runAdmin, runPlatform } = await import("./stack/admin.ts");
  process.exitCode = await (args[0] === "platform" ? runPlatform(args.slice(1)) : runAdmin(args));
} catch (error) {
  console.error(`slipway: ${(error as Error).message}`);
  process.exitCode = 1;
}
