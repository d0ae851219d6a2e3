/** A registry without TLS, for clients that are tried on this machine. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureBinary } from "../../../hack/cluster/binaries.ts";
import { waitFor } from "../../../hack/lib/wait.ts";

/** Starts it with its data in a folder, and waits until it answers. @param host `address:port` of loopback */
export async function startRegistry(folder: string, host: string): Promise<ChildProcess> {
  const config = join(folder, "registry.yaml");
  const settings = {
    version: 0.1,
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(folder, "registry") } },
    http: { addr: host },
  };
  await writeFile(config, JSON.stringify(settings));
  const registry = spawn(await ensureBinary("registry"), ["serve", config], {
    env: { ...process.env, OTEL_TRACES_EXPORTER: "none" },
    stdio: "ignore",
  });
  await waitFor("the registry", 30_000, async () => (await fetch(`http://${host}/v2/`)).ok);
  return registry;
}
