import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { CliError } from "./command.ts";
import type { Profile, ProfileFile } from "./settings.ts";

/** The file of profiles; undefined where there is none. @throws CliError for one that is no such file */
export async function readProfiles(file: string): Promise<ProfileFile | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return undefined;
    }
    throw error;
  }
  try {
    const { current, profiles } = JSON.parse(text) as Partial<ProfileFile>;
    if (typeof current === "string" && typeof profiles === "object" && profiles !== null) {
      return { current, profiles };
    }
  } catch {
    // The message below says what to do.
  }
  throw new CliError(`${file} is not a file of profiles: remove it, then run \`slipway login\``);
}

/** Adds a profile and makes it the current one. Only its owner may read the file, which is replaced whole. */
export async function saveProfile(file: string, name: string, profile: Profile): Promise<void> {
  const before = await readProfiles(file);
  const after: ProfileFile = { current: name, profiles: { ...before?.profiles, [name]: profile } };
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.tmp`;
  await writeFile(draft, `${JSON.stringify(after, null, 2)}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await rename(draft, file);
}
