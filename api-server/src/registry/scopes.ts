import type { RegistryAccess } from "@slipway/crds";

/** Scopes of the distribution project's token specification: `repository:<name>:<action>,<action>`. */

/** Scopes of one request. */
const MOST = 16;
/** An organization's images are in `<organization id>/<project id>`. */
const SCOPE = /^repository:([a-z0-9-]+\/[a-z0-9-]+):([a-z*]+(?:,[a-z*]+)*)$/;

/**
 * What of the scopes a node of an organization gets: to pull that organization's images, and nothing else. What is not granted is
 * left out, as the specification has it. Pure.
 * @param scopes each may hold several, with spaces between
 */
export function grantedAccess(organizationId: string, scopes: readonly string[]): RegistryAccess[] {
  return scopes
    .flatMap((scope) => scope.split(" "))
    .slice(0, MOST)
    .flatMap((scope) => {
      const [, repository = "", actions = ""] = SCOPE.exec(scope) ?? [];
      const isOwn = repository.startsWith(`${organizationId}/`);
      return isOwn && actions.split(",").includes("pull") ? [{ repository, actions: ["pull" as const] }] : [];
    });
}
