import { type Environment, listenAddress, logLevel, parseSettings, portNumber } from "@slipway/process";
import { z } from "zod";

const environment = z.object({
  SLIPWAY_LOG_LEVEL: logLevel.default("info"),
  SLIPWAY_LISTEN_ADDRESS: listenAddress.default("0.0.0.0"),
  SLIPWAY_PORT: portNumber,
  SLIPWAY_METRICS_PORT: portNumber.default(9090),
});

export interface ActivatorSettings {
  logLevel: string;
  listenAddress: string;
  port: number;
  metricsPort: number;
}

/** @throws ConfigError naming every variable that is wrong, never its value */
export function activatorSettings(env: Environment): ActivatorSettings {
  const e = parseSettings(environment, env);
  return {
    logLevel: e.SLIPWAY_LOG_LEVEL,
    listenAddress: e.SLIPWAY_LISTEN_ADDRESS,
    port: e.SLIPWAY_PORT,
    metricsPort: e.SLIPWAY_METRICS_PORT,
  };
}
