/** The project's variables for steps of the build: a shell script of exports, mounted as a secret. */

import { createHmac, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** BuildKit rejects secrets of more than 500 KiB. */
const MAX_SCRIPT_BYTES = 480 * 1024;
/** Names that a step's shell depends on. */
const RESERVED = new Set([
  "PATH",
  "HOME",
  "IFS",
  "PWD",
  "OLDPWD",
  "SHELL",
  "UID",
  "EUID",
  "GID",
  "PPID",
  "OPTIND",
  "ENV",
  "BASH_ENV",
  "LD_PRELOAD",
]);
/** Variables with which tools find certificate authorities. */
const CA_VARIABLES = [
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "PIP_CERT",
  "REQUESTS_CA_BUNDLE",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "BUNDLE_SSL_CA_CERT",
  "COMPOSER_CAFILE",
];

/** Files of a folder by name; none when there is no folder. Kubernetes' own entries begin with two dots. */
export async function readVariables(folder: string): Promise<Record<string, string>> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") {
      return [];
    }
    throw error;
  });
  const entries = names
    .filter((name) => !name.startsWith(".."))
    .toSorted()
    .map(async (name) => [name, await readFile(join(folder, name), "utf8")] as const);
  return Object.fromEntries(await Promise.all(entries));
}

export interface Script {
  text: string;
  /** Variables that were left out. */
  leftOut: string[];
}

/**
 * The script. The project's variables override the platform's. Pure.
 * @param caFile path of the authorities in a step, undefined without any
 */
export function exportScript(
  tools: Record<string, string>,
  envs: Record<string, string>,
  caFile?: string,
): Script {
  const authorities =
    caFile === undefined ? {} : Object.fromEntries(CA_VARIABLES.map((name) => [name, caFile]));
  const leftOut: string[] = [];
  let text = "";
  for (const [name, value] of Object.entries({ ...authorities, ...tools, ...envs })) {
    const line = `export ${name}='${value.replaceAll("'", "'\\''")}'\n`;
    const fits = Buffer.byteLength(text) + Buffer.byteLength(line) <= MAX_SCRIPT_BYTES;
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.has(name) && fits) {
      text += line;
    } else {
      leftOut.push(name);
    }
  }
  return { text, leftOut };
}

/**
 * A new revision whenever a variable changes, so that no earlier step is taken from the cache. It reveals nothing of the
 * values: its key is generated once per cache, and stays there.
 */
export async function variablesRevision(script: string, cache: string): Promise<string> {
  const file = join(cache, "revision-key");
  await mkdir(cache, { recursive: true });
  const key = await readFile(file).catch(async () => {
    const generated = randomBytes(32);
    await writeFile(file, generated, { mode: 0o600 });
    return generated;
  });
  return createHmac("sha256", key).update(script).digest("hex").slice(0, 32);
}
