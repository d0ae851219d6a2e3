import type { Cluster } from "../cluster/cluster.ts";
import { readEnvFile } from "../lib/env-file.ts";
import { stackFile } from "../lib/paths.ts";
import { say } from "../lib/steps.ts";
import { waitFor } from "../lib/wait.ts";
import { adminJson } from "./admin.ts";

export interface Organization {
  organization_id: string;
  api_key: string;
  owner_token: string;
}

/** Whether the API takes this key; undefined while it does not answer. */
async function accepts(url: string, key: string): Promise<boolean | undefined> {
  const response = await fetch(`${url}/v1/project?limit=1`, {
    headers: { "x-api-key": key },
    signal: AbortSignal.timeout(5_000),
  });
  await response.body?.cancel();
  if (response.status === 200) {
    return true;
  }
  if (response.status === 401 || response.status === 403) {
    return false;
  }
  return undefined;
}

/**
 * The first organization: the stack file's own while the API still takes its key, else a new one.
 * @param url base address of the API; undefined where this machine cannot reach it, then the stack file is trusted
 */
export async function ensureOrganization(cluster: Cluster, url: string | undefined): Promise<Organization> {
  const known = readEnvFile(stackFile);
  const { SLIPWAY_ORGANIZATION_ID: id, SLIPWAY_API_KEY: key, SLIPWAY_OWNER_TOKEN: token } = known;
  if (id && key && token) {
    const valid =
      url === undefined || (await waitFor("an answer of the API", 30_000, () => answer(url, key))).valid;
    if (valid) {
      say(`organization ${id} kept`);
      return { organization_id: id, api_key: key, owner_token: token };
    }
  }
  const args = ["organization", "create", "--name", "First organization"];
  const created = await adminJson<Organization>(cluster.kubeconfig, args);
  say(`organization ${created.organization_id} created`);
  return created;
}

async function answer(url: string, key: string): Promise<{ valid: boolean } | undefined> {
  const valid = await accepts(url, key);
  return valid === undefined ? undefined : { valid };
}
