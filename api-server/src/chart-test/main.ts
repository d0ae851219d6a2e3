import { randomBytes } from "node:crypto";
import { ConfigError, systemClock } from "@slipway/process";
import { createClient } from "./client.ts";
import { createIngressClient } from "./ingress.ts";
import { runSuffix } from "./names.ts";
import { explain, runChartTest } from "./run.ts";
import { readSettings } from "./settings.ts";

/**
 * The program of the pod that `helm test` starts: a client of `/v1` that creates an application and a job, and deletes them. It has one
 * API key and no rights in the cluster. With the variables of a stack file it runs from anywhere that reaches the API.
 */

const clock = systemClock;
const start = clock.monotonic();
const report = (line: string): void => {
  console.log(`${((clock.monotonic() - start) / 1_000).toFixed(1).padStart(6)} s  ${line}`);
};

try {
  const settings = readSettings(process.env);
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => stop.abort());
  }
  await runChartTest({
    settings,
    call: createClient(settings.url, settings.apiKey),
    requestIngress: settings.ingressUrl === undefined ? undefined : createIngressClient(settings.ingressUrl),
    budget: { clock, deadline: start + settings.timeoutMs, signal: stop.signal },
    suffix: runSuffix(clock.now(), randomBytes(3).toString("hex")),
    report,
  });
  report("all steps have passed");
} catch (error) {
  if (error instanceof ConfigError) {
    console.error(`chart-test: ${error.message}`);
    process.exitCode = 2;
  } else {
    for (const line of explain(error)) {
      report(line);
    }
    process.exitCode = 1;
  }
}
