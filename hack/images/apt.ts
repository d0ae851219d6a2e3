import { rmSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CommandError, run } from "../lib/exec.ts";
import { scratchRoot } from "./store.ts";

/** Debian packages for an image, whatever this machine has installed. */
export interface Apt {
  /** Names of the packages that an empty system would need to install `packages`. */
  closure: (packages: string[]) => Promise<string[]>;
  /** Puts the packages' files into a folder. */
  download: (packages: string[], folder: string) => Promise<void>;
}

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** The packages of the release that this machine runs, from its own sources. */
export function aptOfMachine(scratch: string): Promise<Apt> {
  return aptWith([], scratch);
}

const suites = new Map<string, Promise<Apt>>();

/**
 * The packages of another Debian release, from the mirror of this machine's own sources. Its package lists are read once
 * for all images that a process builds. Release files of `testing` are valid for days alone, and a mirror may be behind
 * them; they are signed all the same.
 */
export function aptOfSuite(suite: string): Promise<Apt> {
  const known = suites.get(suite) ?? openSuite(suite);
  suites.set(suite, known);
  // A failure is not remembered: the next image tries again.
  known.catch(() => suites.delete(suite));
  return known;
}

async function openSuite(suite: string): Promise<Apt> {
  const folder = await mkdtemp(join(await scratchRoot(), `apt-${suite}-`));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const lists = join(folder, "lists");
  const cache = join(folder, "cache");
  for (const path of [lists, cache]) {
    await mkdir(path, { recursive: true });
  }
  const sources = join(folder, "sources.list");
  await writeFile(
    sources,
    `deb [check-valid-until=no signed-by=${KEYRING}] ${await mirror()} ${suite} main\n`,
  );
  const apt = await aptWith(
    options({
      "Dir::Etc::sourcelist": sources,
      "Dir::Etc::sourceparts": "-",
      "Dir::State::lists": lists,
      // The same for every call, so that what apt has computed from the lists is of use to the next one.
      "Dir::State::status": join(folder, "status"),
      "Dir::Cache": cache,
      "Acquire::Languages": "none",
    }),
    folder,
  );
  await apt.update();
  return apt;
}

async function aptWith(places: string[], scratch: string): Promise<Apt & { update: () => Promise<unknown> }> {
  const status = join(scratch, "status");
  await writeFile(status, "");
  const empty = options({ "Dir::State::status": status, "Debug::NoLocking": "1" });
  const update = () => run("apt-get", [...places, "update"]);
  return {
    update,
    closure: async (packages) => {
      const install = ["-s", "--no-install-recommends", "install", ...packages];
      const plan = await run("apt-get", [...places, ...empty, ...install]);
      return [...plan.matchAll(/^Inst (\S+)/gm)].flatMap((match) => match[1] ?? []);
    },
    download: async (packages, cwd) => {
      const download = [...places, ...options({ "APT::Sandbox::User": "root" }), "download", ...packages];
      try {
        await run("apt-get", download, { cwd });
      } catch (error) {
        if (!(error instanceof CommandError)) {
          throw error;
        }
        // Package lists go stale: a mirror keeps only the newest version of each.
        await update();
        await run("apt-get", download, { cwd });
      }
    },
  };
}

/** apt's own settings, as its arguments. */
function options(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

/** Base address of the Debian archive in this machine's sources. */
async function mirror(): Promise<string> {
  const format = ["--format", "$(ORIGIN) $(SUITE) $(REPO_URI)", "Created-By: Packages"];
  const known = await run("apt-get", ["indextargets", ...format]);
  const line = /^Debian (?!\S*-security)\S+ (\S+)$/m.exec(known);
  if (!line?.[1]) {
    throw new Error("this machine's apt sources name no Debian archive");
  }
  return line[1];
}
