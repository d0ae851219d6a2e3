/** Which requests the platform's processes have made, as audit logs of kube-apiservers have them. */
import { randomUUID } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type PlatformProcess, platformAccounts } from "../cluster/platform-accounts.ts";

export type { PlatformProcess };

/** The part of an audit.k8s.io/v1 Event that is read here. */
interface AuditEvent {
  readonly verb: string;
  readonly userAgent?: string;
  readonly user: { readonly username: string };
  readonly impersonatedUser?: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}

/** The accounts of the installed chart, and of tests. */
const ACCOUNTS: Readonly<Record<string, PlatformProcess>> = {
  ...platformAccounts,
  // Tests of the API server against a kube-apiserver alone.
  "test:api-server": "api-server",
};
/** Tests run the operator against a kube-apiserver alone as the cluster's administrator. */
const OPERATOR_AGENT = "slipway.dev/operator";

/**
 * The permissions that one request needed, each as `process group/resource verb`; none for others' requests and denied ones.
 * Server-side apply needs `create` as well when the object did not exist.
 */
export function permissionsOf(event: AuditEvent): string[] {
  const { verb, user, userAgent, impersonatedUser, objectRef, responseStatus } = event;
  const account = ACCOUNTS[impersonatedUser?.username ?? user.username];
  const process = account ?? (userAgent === OPERATOR_AGENT ? "operator" : undefined);
  const code = responseStatus?.code ?? 0;
  if (process === undefined || objectRef?.resource === undefined || code === 401 || code === 403) {
    return [];
  }
  const { apiGroup = "", resource, subresource } = objectRef;
  const name = permission(process, apiGroup, subresource ? `${resource}/${subresource}` : resource);
  // An exec over WebSocket is authorized as `get` before Kubernetes 1.35, and as `create` since.
  const verbs =
    subresource === "exec"
      ? [verb, "create"]
      : verb === "patch" && code === 201
        ? ["patch", "create"]
        : [verb];
  return verbs.map((each) => `${name} ${each}`);
}

/** `process group/resource`; the core group is written `core`. */
export function permission(process: PlatformProcess, group: string, resource: string): string {
  return `${process} ${group === "" ? "core" : group}/${resource}`;
}

/** The permissions that the requests in an audit log needed. A line that was cut off is left out. */
export async function permissionsInLog(file: string): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    if (line.startsWith("{") && line.endsWith("}")) {
      for (const each of permissionsOf(JSON.parse(line) as AuditEvent)) {
        found.add(each);
      }
    }
  }
  return found;
}

/** The folder in which test clusters record what their audit logs show, before they delete them; none are recorded without it. */
export const RECORD_FOLDER_VARIABLE = "SLIPWAY_TEST_PERMISSIONS";

/** Records the permissions that requests in a test cluster's audit log needed, one a line, when a test run asks for it. */
export async function recordPermissions(auditLog: string): Promise<void> {
  const folder = process.env[RECORD_FOLDER_VARIABLE];
  if (folder === undefined || !existsSync(auditLog)) {
    return;
  }
  const found = await permissionsInLog(auditLog);
  if (found.size > 0) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `${randomUUID()}.txt`), [...found].join("\n"));
  }
}
