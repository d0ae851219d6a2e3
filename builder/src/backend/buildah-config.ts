/** buildah's configuration files, in place of those in the builder's image. Pure. */

/** @param helpers folder of programs that buildah searches for */
export const containersConf = (helpers: string): string =>
  `[engine]\nhelper_binaries_dir = [${JSON.stringify(helpers)}]\n`;

/** Images are identified by digests and not signed. */
export const policy = JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] });

/**
 * Names without a registry are Docker Hub's, as everywhere. The given hosts are read from their mirrors on loopback only.

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
