/** Submodules: public repositories of the repository's own server, and no others. */

import { mkdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { StepError } from "../failures/codes.ts";
import type { Git, TreeEntry } from "./git.ts";

/** Most of them, those of submodules included. */
export const MAX_SUBMODULES = 20;

export interface Submodule {
  /** Below the folder of the repository that has it. */
  path: string;
  commitSha: string;
  url: string;
}

/** The submodules of a commit. @throws StepError that names the first that cannot be fetched */
export async function submodulesOf(
  git: Git,
  { commitSha, url, entries }: { commitSha: string; url: string; entries: readonly TreeEntry[] },
): Promise<Submodule[]> {
  const links = entries.filter(({ type }) => type === "commit");
  if (links.length === 0) {
    return [];
  }
  const listed = await git.read(["config", "--blob", `${commitSha}:.gitmodules`, "--list", "--null"]);
  const addresses = addressesOf(listed ?? "");
  return links.map(({ path, id }) => {
    const said = addresses.get(path);
    if (said === undefined) {
      throw StepError.of("GIT_SUBMODULE_UNAVAILABLE", {
        name: path,
        said: "`.gitmodules` does not name it.",
      });
    }
    const address = ownAddress(said, url);
    if (address === undefined) {
      const reason = "It is at another server, or its address is none that builds take.";
      throw StepError.of("GIT_SUBMODULE_UNAVAILABLE", { name: path, said: reason });
    }
    return { path, commitSha: id, url: address };
  });
}

/** Reads `git config --list --null` of a `.gitmodules`: addresses by path. Pure. */
export function addressesOf(listed: string): Map<string, string> {
  const settings = new Map<string, { path?: string; url?: string }>();
  for (const entry of listed.split("\0")) {
    const [, name, key, value] = /^submodule\.(.+)\.(path|url)\n(.*)$/s.exec(entry) ?? [];
    if (name !== undefined) {
      settings.set(name, { ...settings.get(name), [key as string]: value });
    }
  }
  return new Map(
    [...settings.values()].flatMap(({ path, url }) =>
      path === undefined || url === undefined ? [] : [[path, url] as const],
    ),
  );
}

/**
 * The address of a submodule at the server of the repository, without a credential: whoever may push to one repository need not be
 * allowed to read the others that its connection may. Undefined when it is anywhere else. Pure.
 * @param said as `.gitmodules` has it: relative, `https:`, or for `ssh`
 */
export function ownAddress(said: string, repository: string): string | undefined {
  const own = new URL(repository);
  const [, host, path] = /^(?:ssh:\/\/)?git@([^:/@]+)(?::(?:\d+\/)?|\/)([^:@]+)$/.exec(said) ?? [];
  const isRelative = said.startsWith("./") || said.startsWith("../");
  if (host === undefined && !isRelative && !URL.canParse(said)) {
    return undefined;
  }
  const base = repository.endsWith("/") ? repository : `${repository}/`;
  const url =
    host === undefined
      ? new URL(said, isRelative ? base : undefined)
      : new URL(`/${path}`, `${own.protocol}//${own.host}`);
  if (host !== undefined && host !== own.hostname) {
    return undefined;
  }
  if (url.protocol !== own.protocol || url.host !== own.host) {
    return undefined;
  }
  if (own.protocol === "file:") {
    return undefined;
  }
  return `${url.protocol}//${url.host}${url.pathname}`;
}

/** The folder that a submodule goes to, made. @throws StepError when something leads it out of the checkout */
export async function submoduleFolder(target: string, path: string): Promise<string> {
  const folder = join(target, path);
  await mkdir(folder, { recursive: true });
  if (!(await realpath(folder)).startsWith((await realpath(target)) + sep)) {
    throw StepError.of("GIT_SUBMODULE_UNAVAILABLE", { name: path });
  }
  return folder;
}
