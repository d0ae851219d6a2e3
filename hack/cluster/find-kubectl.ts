import { existsSync } from "node:fs";
import { succeeds } from "../lib/exec.ts";
import { UserError } from "../lib/steps.ts";
import { binaryPath } from "./binaries.ts";

/**
 * The embedded cluster's kubectl where it is built, else the one in PATH.
 * @returns program and the words before its arguments
 * @throws UserError when there is neither
 */
export async function findKubectl(): Promise<string[]> {
  const own = binaryPath("kubernetes");
  if (existsSync(own)) {
    return [own, "kubectl"];
  }
  if (await succeeds("kubectl", ["version", "--client"])) {
    return ["kubectl"];
  }
  throw new UserError("there is no kubectl: neither in PATH nor built by hack/up.sh");
}
