import { randomBytes } from "node:crypto";
import type { Kubectl } from "../cluster/kubectl.ts";
import { waitFor } from "../lib/wait.ts";

/** The client of the access-log line that names this path; undefined when no line does. */
export function clientOf(log: string, path: string): string | undefined {
  for (const line of log.split("\n")) {
    if (!line.includes(path)) {
      continue;
    }
    try {
      const entry = JSON.parse(line) as { ClientHost?: string; RequestPath?: string };
      if (entry.RequestPath === path && entry.ClientHost) {
        return entry.ClientHost;
      }
    } catch {
      // A line that is no access-log entry.
    }
  }
  return undefined;
}

/** Requests a path from the ingress that nothing serves, and reads the client's address in its access log. As a CIDR. */
export async function measureClientCidr(kubectl: Kubectl, ingressUrl: string): Promise<string> {
  const path = `/client-address-${randomBytes(6).toString("hex")}`;
  const response = await fetch(`${ingressUrl}${path}`, { signal: AbortSignal.timeout(10_000) });
  await response.body?.cancel();
  const client = await waitFor("the ingress's access log", 15_000, async () =>
    clientOf(await kubectl(["-n", "slipway-ingress", "logs", "deployment/traefik", "--since=1m"]), path),
  );
  return client.includes(":") ? `${client}/128` : `${client}/32`;
}
