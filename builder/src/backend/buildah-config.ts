/** buildah's command lines, and its configuration files in place of those in the builder's image. Pure. */

import { join } from "node:path";
import type { BuildRequest } from "./backend.ts";

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

/** Builds an image, and writes its id into a file. */
export function buildArguments(
  request: BuildRequest,
  { scratch, idFile, ignoreFile }: { scratch: string; idFile: string; ignoreFile: string },
): string[] {
  return [
    "bud",
    "--isolation=chroot",
    // A separate network would need another program and privileges: steps use the container's, as with BuildKit.
    "--network=host",
    "--http-proxy=false",
    "--layers",
    "--force-rm",
    // The OCI format has no SHELL, which buildah would then ignore: the image is converted at the end.
    "--format=docker",
    "--pull=always",
    "--retry=1",
    "--retry-delay=1s",
    `--signature-policy=${join(scratch, "policy.json")}`,
    `--file=${join(request.dockerfile, "Dockerfile")}`,
    `--ignorefile=${ignoreFile}`,
    `--iidfile=${idFile}`,
    ...Object.entries(request.args).map(([name, value]) => `--build-arg=${name}=${value}`),
    ...Object.entries(request.secrets).map(([id, file]) => `--secret=id=${id},src=${file}`),
    request.context,
  ];
}

/** Writes an image to a folder in OCI layout. */
export function pushArguments(id: string, output: string, scratch: string): string[] {
  return ["push", `--signature-policy=${join(scratch, "policy.json")}`, "--format=oci", id, `oci:${output}`];
}
