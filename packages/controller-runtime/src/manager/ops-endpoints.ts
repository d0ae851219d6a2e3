import { type Check, startOpsServer } from "@slipway/process";
import type { Registry } from "prom-client";

/** What a manager serves to the kubelet and to Prometheus: `/healthz`, `/readyz`, `/metrics`. */
export class OpsEndpoints {
  readonly health = new Map<string, Check>([["ping", () => true]]);
  readonly ready = new Map<string, Check>();

  /** Serves on the port; undefined without one. @throws Error when the port is taken */
  async serve(options: {
    registry: Registry;
    port: number | undefined;
    host: string | undefined;
  }): Promise<{ port: number; close(): Promise<void> } | undefined> {
    const { registry, port, host } = options;
    if (port === undefined) {
      return undefined;
    }
    const { health, ready } = this;
    return startOpsServer({ registry, port, ...(host ? { host } : {}), health, ready });
  }
}
