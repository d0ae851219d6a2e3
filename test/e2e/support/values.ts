import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { run } from "../../../hack/lib/exec.ts";
import { confDir, root, toolDir } from "../../../hack/lib/paths.ts";
import { acquireExclusive } from "./exclusive.ts";
import { systemNamespace } from "./operator.ts";
import { stack } from "./stack.ts";

/**
 * Upgrades the stack's own release of the chart with more values, and resolves once all that changed has rolled out.
 * @param first what is done once no other file has the platform's settings, before they change
 * @returns gives the release back the values that it had
 */
export async function withValues(
  values: object,
  first?: () => Promise<unknown>,
): Promise<() => Promise<void>> {
  const file = join(tmpdir(), `slipway-values-${randomBytes(4).toString("hex")}.yaml`);
  await writeFile(file, stringify(values), { mode: 0o600 });
  try {
    await upgrade(["-f", file], first);
  } finally {
    await rm(file);
  }
  return () => upgrade([]);
}

async function upgrade(more: string[], first?: () => Promise<unknown>): Promise<void> {
  // An upgrade writes what another file has set meanwhile.
  const release = await acquireExclusive("settings");
  try {
    await first?.();
    await runUpgrade(more);
  } finally {
    release();
  }
}

async function runUpgrade(more: string[]): Promise<void> {
  const own = join(confDir, "values.yaml");
  const args = [
    "upgrade",
    "slipway",
    join(root, "charts/slipway"),
    "-n",
    systemNamespace,
    "-f",
    own,
    ...more,
  ];
  args.push("--history-max", "5", "--timeout", "5m", "--wait", "--kubeconfig", stack.kubeconfig);
  await run(join(toolDir, "helm"), args);
}
