import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { stack } from "./stack.ts";

export interface Organization {
  readonly organization_id: string;
  readonly api_key: string;
  readonly owner_token: string;
}

const root = join(import.meta.dirname, "../../..");

/** Runs the admin command and gives the one JSON object that it prints. */
export async function admin<T>(...args: readonly string[]): Promise<T> {
  const { stdout } = await promisify(execFile)(
    "npm",
    ["run", "--silent", "slipway", "--", "admin", ...args, "--json"],
    { cwd: root, env: { ...process.env, KUBECONFIG: stack.kubeconfig } },
  );
  return JSON.parse(stdout) as T;
}

export const createOrganization = (name: string): Promise<Organization> =>
  admin<Organization>("organization", "create", "--name", name);
