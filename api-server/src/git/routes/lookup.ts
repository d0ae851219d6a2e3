import type { GitConnection } from "@slipway/crds";
import type { Principal } from "../../auth/principal.ts";
import type { Call } from "../../http/route.ts";
import type { Services } from "../../services.ts";
import { findConnection } from "../cluster.ts";

type AboutConnection = Pick<Call<unknown, unknown, unknown>, "principal" | "request">;

/** Concurrency in one process of the operations that wait for tenants' servers. */
export const MAX_CONCURRENT = 16;

/** The connection of the path, of the caller's organization. @throws Failure 404, 503 */
export function connectionOf(
  { principal, request }: AboutConnection,
  { kube }: Pick<Services, "kube">,
): Promise<GitConnection> {
  const { connectionId } = request.params as { connectionId: string };
  return findConnection(kube, (principal as Principal).organizationId, connectionId);
}
