/** What a release is made from: the tree of its commit, and what that tree's own modules say of images and programs. */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { missingBinaries } from "../../cluster/binaries.ts";
import type { binaries } from "../../cluster/programs.ts";
import type { baseImages } from "../../images/base/index.ts";
import type { buildImage } from "../../images/build.ts";
import type { builder } from "../../images/builder.ts";
import type { databaseImages } from "../../images/databases.ts";
import type { images } from "../../images/index.ts";
import { run } from "../../lib/exec.ts";
import { root, stateDir } from "../../lib/paths.ts";
import { UserError } from "../../lib/steps.ts";

/** A checkout of the commit of a release, with its dependencies. */
export interface ReleaseTree {
  path: string;
  /** In full. */
  commit: string;
  remove: () => Promise<void>;
}

const git = (args: string[]): Promise<string> => run("git", ["-C", root, ...args]);

/** Checks the commit out beside these sources and installs its dependencies. @throws UserError when there is no such commit */
export async function checkOut(revision: string, log: string): Promise<ReleaseTree> {
  const commit = (
    await git(["rev-parse", "--verify", `${revision}^{commit}`]).catch(() => {
      throw new UserError(
        `there is no commit ${revision}: git fetch --unshallow gets a history that lacks it`,
      );
    })
  ).trim();
  const path = join(stateDir, "releases", commit);
  const remove = async () => {
    await rm(path, { recursive: true, force: true });
    await git(["worktree", "prune"]);
  };
  // What an interrupted release left.
  await remove();
  try {
    await git(["worktree", "add", "--quiet", "--detach", path, commit]);
    const flags = ["--no-audit", "--no-fund", "--prefer-offline"];
    await run("npm", ["ci", ...flags], { cwd: path, log });
  } catch (error) {
    await remove();
    throw error;
  }
  return { path, commit, remove };
}

/** The modules of a tree that its images and programs come from: all releases have had them since 0.1.0. */
export async function recipesOf(tree: string) {
  const load = async <T>(path: string): Promise<T> => {
    const file = join(tree, "hack", path);
    if (!existsSync(file)) {
      throw new UserError(`the commit has no hack/${path}: it is older than 0.1.0`);
    }
    return (await import(file)) as T;
  };
  const [stack, databases, build, ofBuilds, bases, cluster, programs] = await Promise.all([
    load<{ images: typeof images }>("images/index.ts"),
    load<{ databaseImages: typeof databaseImages }>("images/databases.ts"),
    load<{ buildImage: typeof buildImage }>("images/build.ts"),
    load<{ builder: typeof builder }>("images/builder.ts"),
    load<{ baseImages: typeof baseImages }>("images/base/index.ts"),
    load<
      Pick<typeof import("../../cluster/binaries.ts"), "ensureBinaries"> & {
        missingBinaries: typeof missingBinaries;
      }
    >("cluster/binaries.ts"),
    load<{ binaries: typeof binaries }>("cluster/programs.ts"),
  ]);
  return { ...stack, ...databases, ...build, ...ofBuilds, ...bases, ...cluster, ...programs };
}
