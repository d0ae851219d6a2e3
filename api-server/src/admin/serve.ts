import { createLogger, startOpsServer } from "@slipway/process";
import { Counter, Registry } from "prom-client";
import { shutdownInOrder } from "../http/shutdown.ts";
import { openAdminContext } from "./context.ts";
import { runAdminCommand } from "./program.ts";
import { ADMIN_PORT, adminServer } from "./server.ts";

/**
 * The process of the Deployment `slipway-admin`: it runs the commands of `npm run slipway -- admin`, so that none costs the
 * API server memory, and a hundred concurrent calls start no process.
 */

/** Less than the three minutes for which a client waits. */
const COMMAND_TIMEOUT_MS = 150_000;

const logger = createLogger("api-server", process.env.SLIPWAY_LOG_LEVEL ?? "info");
try {
  const { close, ...context } = openAdminContext(process.env, (error) =>
    logger.warn({ err: error }, "ledger connection lost"),
  );
  const registry = new Registry();
  const commands = new Counter({
    name: "slipway_admin_commands_total",
    help: "Admin commands that have ended, by result.",
    labelNames: ["result"],
    registers: [registry],
  });
  const server = adminServer(
    async (words) => {
      const result = await runAdminCommand(words, { ...context, timeoutMs: COMMAND_TIMEOUT_MS });
      commands.inc({ result: result.exitCode === 0 ? "succeeded" : "failed" });
      return result;
    },
    (error) => logger.error({ err: error }, "admin command failed"),
  );
  const ops = await startOpsServer({
    registry,
    port: Number(process.env.SLIPWAY_METRICS_PORT ?? 9090),
    health: new Map([["ping", () => true]]),
    ready: new Map([["ping", () => true]]),
  });
  server.listen(ADMIN_PORT, "127.0.0.1", () => logger.info({ port: ADMIN_PORT }, "serving"));
  shutdownInOrder(logger, {
    drainMs: 0,
    beginDraining: () => {},
    steps: [() => new Promise((resolve) => server.close(resolve)), close, () => ops.close()],
  });
} catch (error) {
  logger.fatal({ err: error }, "cannot serve");
  process.exit(1);
}
