/** The project's variables as a step of the build gets them: a shell script of exports, in a secret. */

import { createHmac, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** BuildKit takes no secret of more than 500 KiB. */
const MAX_SCRIPT_BYTES = 480 * 1024;
/** Names that would take the step's own ground away from it. */
const KEPT = new Set([
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
/** How tools are told whom to trust. */
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
  /** Variables that steps of the build do not get. */
  leftOut: string[];
}

/**
 * The script. What the project sets wins over the platform's. Pure.
 * @param caFile where the authorities are in a step, undefined when there are none
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
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !KEPT.has(name) && fits) {
      text += line;
    } else {
      leftOut.push(name);
    }
  }
  return { text, leftOut };
}

/**
 * Another revision whenever a variable changes, so that no step of before is taken from the cache. It tells nothing of the
 * values: its key is made once for each cache, and stays there.
 */
export async function variablesRevision(script: string, cache: string): Promise<string> {
  const file = join(cache, "revision-key");
  await mkdir(cache, { recursive: true });
  const key = await readFile(file).catch(async () => {
    const made = randomBytes(32);
    await writeFile(file, made, { mode: 0o600 });
    return made;
  });
  return createHmac("sha256", key).update(script).digest("hex").slice(0, 32);
}
