/** Images that were built for an organization: no other may run them. Pure. */

/**
 * Whether an image is in the platform's registry of builds and not this organization's.
 * @param image reference of an image
 * @param buildsRegistry `host` or `host:port`; undefined where nothing is built
 */
export function isForeignBuild(
  image: string,
  organizationId: string,
  buildsRegistry: string | undefined,
): boolean {
  const [host = "", ...path] = image.toLowerCase().split("/");
  if (buildsRegistry === undefined || withPort(host) !== withPort(buildsRegistry.toLowerCase())) {
    return false;
  }
  return path.length < 2 || path[0] !== organizationId;
}

/** Ways to write the same registry are one. */
const withPort = (host: string): string => host.replace(/\.(?=:|$)/, "").replace(/^([^:]+)$/, "$1:443");
