import { rm } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/exec.ts";
import { listFiles, writeFiles } from "./files.ts";
import { unpackWheels } from "./registries.ts";

/** Python and what Patroni imports, from the release itself: compiled parts then fit its Python. */
export const patroniPackages = [
  "python3",
  "python3-psycopg2",
  "python3-yaml",
  "python3-click",
  "python3-prettytable",
  "python3-dateutil",
  "python3-psutil",
  "python3-urllib3",
  "python3-cdiff",
];

/** Patroni itself, the same for every release. Its Kubernetes support needs no further package. */
export const patroniRequirement =
  "patroni==4.1.5 --hash=sha256:7aad8c1539e6c51c269a8005169dd54ddc7668437b7900fa6099d7894e224c84";

/** The commands, which pip would write with the path of its own Python. */
const commands = {
  "usr/bin/patroni": command("patroni.__main__", "main"),
  "usr/bin/patronictl": command("patroni.ctl", "ctl"),
};

/** Stands for all of the above in a layer's key. */
export const patroniRevision = JSON.stringify(["1", patroniRequirement, commands]);

function command(module: string, entry: string): string {
  // Python's multiprocessing reads the program again in each child, under another name.
  const run = `if __name__ == "__main__":\n    sys.exit(${entry}())\n`;
  return `#!/usr/bin/python3\nimport sys\nfrom ${module} import ${entry}\n\n${run}`;
}

/** Parts of Python's library that are for developers of Python or for screens. */
const leftOut = ["test", "idlelib", "lib2to3", "tkinter", "turtledemo", "ensurepip", "pydoc_data"];

/** Puts Patroni into an unpacked root that has `patroniPackages`, and compiles its Python. */
export async function addPatroni(root: string, scratch: string): Promise<void> {
  const modules = join(root, "usr/lib/python3/dist-packages");
  await unpackWheels([patroniRequirement], modules, scratch);
  await writeFiles(root, commands, 0o755);
  const [library] = (await listPython(root)).slice(-1);
  if (!library) {
    throw new Error("the image has no Python");
  }
  for (const part of leftOut) {
    await rm(join(root, library, part), { recursive: true, force: true });
  }
  // The root file system of a container is read-only: what is not compiled now is compiled at every start. The tar has no
  // times, so the compiled files must not depend on any.
  const flags = ["-q", "--invalidation-mode", "unchecked-hash"];
  const compile = ["/usr/bin/python3", "-m", "compileall", ...flags, "/usr/lib/python3", `/${library}`];
  await run("env", ["-i", "/usr/sbin/chroot", root, ...compile]);
}

/** Folders of Python's own library: `usr/lib/python3.13`. */
async function listPython(root: string): Promise<string[]> {
  const found = await listFiles(join(root, "usr/lib"), (path) => /^python3\.\d+($|\/os\.py$)/.test(path));
  return found.map((path) => join("usr/lib", path.replace(/\/os\.py$/, "")));
}
