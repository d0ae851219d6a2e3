import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../../hack/lib/exec.ts";
import { namespaceOf, stack } from "./stack.ts";

/** Kinds with a page in `docs/resources`. */
type Kind = "project" | "jobrun" | "build" | "backup" | "gitconnection" | "domainclaim";

const WAIT_SECONDS = 300;

/**
 * Runs the `kubectl wait` of a kind's page for an object of the stack's organization.
 * @throws when the page has none, or what kubectl prints when the condition is not met in time
 */
export async function waitAsDocumented(kind: Kind, name: string): Promise<void> {
  const page = await readFile(join(import.meta.dirname, `../../../docs/resources/${kind}.md`), "utf8");
  const [, command] = new RegExp(`^    kubectl (wait .*) ${kind}/\\S+$`, "m").exec(page) ?? [];
  if (command === undefined) {
    throw new Error(`docs/resources/${kind}.md shows no kubectl wait`);
  }
  const namespace = namespaceOf(stack.organization);
  const words = command.replace("slipway-org-<organization id>", namespace).split(" ");
  const access = ["--kubeconfig", stack.kubeconfig, `--timeout=${WAIT_SECONDS}s`];
  await run("kubectl", [...words, `${kind}/${name}`, ...access]);
}
