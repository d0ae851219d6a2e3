import type { Git } from "./git.ts";

/** A file, or a submodule (`commit`), of a commit. */
export interface TreeEntry {
  type: "blob" | "commit";
  /** `120000` is a symbolic link. */
  mode: string;
  /** Bytes; 0 of a submodule. */
  size: number;
  path: string;
  /** Of the file's content, or the submodule's commit. */
  id: string;
}

/** All of a commit, from what has been fetched: nothing is written. @throws Error when git cannot read it */
export async function listTree(git: Git, commit: string): Promise<TreeEntry[]> {
  const chunks: Buffer[] = [];
  const { code, text } = await git.run(["ls-tree", "-r", "-l", "-z", "--full-tree", commit], {
    isQuiet: true,
    onStdout: (chunk) => chunks.push(chunk),
  });
  if (code !== 0) {
    throw new Error(`git ls-tree: ${text}`);
  }
  return parseTree(Buffer.concat(chunks).toString("utf8"));
}

/** Reads `git ls-tree -r -l -z`. Pure. */
export function parseTree(text: string): TreeEntry[] {
  return text.split("\0").flatMap((line) => {
    const [, mode, type, id, size, path] =
      /^(\d+) (blob|commit) ([a-f0-9]+) +(\d+|-)\t(.*)$/s.exec(line) ?? [];
    return mode === undefined || path === undefined || id === undefined
      ? []
      : [
          {
            mode,
            type: type === "commit" ? "commit" : "blob",
            size: size === "-" ? 0 : Number(size),
            path,
            id,
          } as const,
        ];
  });
}
