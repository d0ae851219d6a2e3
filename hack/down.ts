import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { deleteKind } from "./cluster/kind.ts";
import { ownerOfMachine } from "./cluster/ownership.ts";
import { knownDaemons } from "./cluster/processes.ts";
import { purgeState, stopEmbedded } from "./cluster/teardown.ts";
import { root, stateDir } from "./lib/paths.ts";
import { say, step, UserError } from "./lib/steps.ts";

const usage = `usage: hack/down.sh [--purge]

Stops the cluster that hack/up.sh started and everything in it. Its data stays, for the next hack/up.sh.

  --purge   removes the data too: databases, volumes, images of the cluster, certificates, keys.
            Built binaries and images stay in the cache of this user.`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { purge: { type: "boolean" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) {
    console.log(usage);
    return;
  }
  const hadKind = await deleteKind();
  const owner = ownerOfMachine();
  const isOthers = owner?.alive === true && owner.root !== root;
  if (!hadKind && isOthers && existsSync(join(owner.root, "hack/down.sh"))) {
    throw new UserError(
      `this machine's embedded cluster belongs to ${owner.root}: ${owner.root}/hack/down.sh takes it down`,
    );
  }
  if (isOthers && hadKind) {
    say(`the embedded cluster of ${owner.root} is left alone`);
  } else if (process.platform === "linux" && (owner !== undefined || knownDaemons().length > 0)) {
    if (process.getuid?.() !== 0) {
      throw new UserError("the embedded cluster runs as root: run hack/down.sh as root");
    }
    await stopEmbedded(join(owner?.root ?? root, ".slipway"), values.purge ? 1 : undefined);
  } else {
    say("no embedded cluster runs");
  }
  if (values.purge) {
    await step("data", () => purgeState(stateDir));
  } else if (existsSync(stateDir) && readdirSync(stateDir).length > 0) {
    say(`data kept in ${stateDir}; --purge removes it`);
  }
}

try {
  await main();
} catch (error) {
  console.error(`down: ${(error as Error).message}`);
  process.exitCode = 1;
}
