/** Files that tell buildah where things are: nothing of the image's own configuration counts. Pure. */

/** @param helpers folder of programs that buildah looks for */
export const containersConf = (helpers: string): string =>
  `[engine]\nhelper_binaries_dir = [${JSON.stringify(helpers)}]\n`;

/** Images are what their digests say; nobody signs them. */
export const policy = JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] });

/**
 * Names without a registry are Docker Hub's, as everywhere. Whatever is read of the given hosts is read from their place on
 * loopback, and from nowhere else.
 */
export function registriesConf(locations: Record<string, string>): string {
  const text = (value: string): string => JSON.stringify(value);
  return [
    'unqualified-search-registries = ["docker.io"]',
    'short-name-mode = "disabled"',
    ...Object.entries(locations).flatMap(([host, location]) => [
      "[[registry]]",
      `prefix = ${text(host)}`,
      `location = ${text(location)}`,
      "insecure = true",
    ]),
    "",
  ].join("\n");
}
