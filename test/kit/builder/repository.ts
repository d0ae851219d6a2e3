import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const exec = promisify(execFile);

/** A real Git repository in a folder of its own. */
export class Repository {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(): Promise<Repository> {
    const repository = new Repository(await mkdtemp(join(tmpdir(), "slipway-repository-")));
    await repository.git("init", "--quiet", "--initial-branch=main");
    return repository;
  }

  get url(): string {
    return `file://${this.folder}`;
  }

  async git(...args: string[]): Promise<string> {
    const identity = [
      "-c",
      "user.name=Ada",
      "-c",
      "user.email=ada@example.com",
      "-c",
      "commit.gpgsign=false",
    ];
    const { stdout } = await exec("git", [...identity, ...args], {
      cwd: this.folder,
      env: { PATH: process.env.PATH, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" },
    });
    return stdout.trimEnd();
  }

  /** Commits the files, and links by what they lead to. @returns the commit's id */
  async commit(
    message: string,
    files: Record<string, string | Buffer>,
    links: Record<string, string> = {},
  ): Promise<string> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(this.folder, path)), { recursive: true });
      await writeFile(join(this.folder, path), content);
    }
    for (const [path, target] of Object.entries(links)) {
      await symlink(target, join(this.folder, path));
    }
    await this.git("add", "--all", "--force");
    await this.git("commit", "--quiet", "--allow-empty", "--message", message);
    return this.git("rev-parse", "HEAD");
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
