import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CommandError } from "../../lib/exec.ts";
import { writeFileAtomic } from "../../lib/files.ts";
import { callGit, type GitAnswer } from "./git-api.ts";
import { type GitServer, gitea } from "./git-server.ts";

/** A user of the Git server with a token that may do everything this user may. */
export interface GitAccount {
  username: string;
  token: string;
}

/** The stack's own user, who is no administrator, and the administrator. */
export const gitUser = "slipway";
const gitAdmin = "slipway-admin";
/** The repository that the stack has from the start; hack/cluster/builds/sample-node. */
export const sampleRepository = "sample-node";

/**
 * The stack's user with a token that works, both made when they are not there: the token stays the same for as long as
 * the server takes it. Beside it the administrator's is kept, in the server's folder, mode 0600.
 */
export async function ensureGitAccount(server: GitServer, binary: string): Promise<GitAccount> {
  await ensureUser(server, binary, gitAdmin, true);
  return ensureUser(server, binary, gitUser, false);
}

async function ensureUser(
  server: GitServer,
  binary: string,
  username: string,
  admin: boolean,
): Promise<GitAccount> {
  const file = join(server.folder, `${username}.token`);
  const kept = (await readFile(file, "utf8").catch(() => "")).trim();
  if (kept !== "" && (await callGit(server, kept, "GET", "/user")).status === 200) {
    return { username, token: kept };
  }
  const create = [
    "admin",
    "user",
    "create",
    "--username",
    username,
    "--email",
    `${username}@localhost.localdomain`,
  ];
  const flags = ["--random-password", "--random-password-length", "32", "--must-change-password=false"];
  await gitea(server, binary, [...create, ...flags, ...(admin ? ["--admin"] : [])]).catch((error: Error) => {
    if (!(error instanceof CommandError && /already exists/.test(error.stderr))) {
      throw error;
    }
  });
  // A user's tokens are distinguished by their names, which cannot be used again.
  const name = `stack-${randomBytes(4).toString("hex")}`;
  const generate = ["admin", "user", "generate-access-token", "--username", username, "--token-name", name];
  const output = await gitea(server, binary, [...generate, "--scopes", "all", "--raw"]);
  // Warnings may precede it.
  const token = output.split("\n").at(-1) ?? "";
  if (!/^[0-9a-f]{40}$/.test(token)) {
    throw new Error(`Gitea made no token for ${username}`);
  }
  await writeFileAtomic(file, `${token}\n`);
  return { username, token };
}

/** Makes the sample repository, private, with its one commit; one that somebody has changed is left as it is. */
export async function ensureSampleRepository(server: GitServer, account: GitAccount): Promise<void> {
  const path = `/repos/${account.username}/${sampleRepository}`;
  const call = (method: "GET" | "POST", at: string, body?: object) =>
    callGit(server, account.token, method, at, body);
  let found = await call("GET", path);
  if (found.status === 404) {
    const body = {
      name: sampleRepository,
      private: true,
      default_branch: "main",
      description: "A small Node application",
    };
    found = expectStatus(await call("POST", "/user/repos", body), 201, "creating the sample repository");
  }
  if (!(expectStatus(found, [200, 201], "the sample repository").body as { empty: boolean }).empty) {
    return;
  }
  const folder = join(import.meta.dirname, "sample-node");
  const files = await Promise.all(
    (await readdir(folder)).sort().map(async (name) => {
      const content = (await readFile(join(folder, name))).toString("base64");
      return { operation: "create", path: name, content };
    }),
  );
  const commit = { branch: "main", message: "Add a small Node application", files };
  expectStatus(await call("POST", `${path}/contents`, commit), 201, "the sample repository's first commit");
}

function expectStatus(answer: GitAnswer, wanted: number | number[], what: string): GitAnswer {
  if ([wanted].flat().includes(answer.status)) {
    return answer;
  }
  throw new Error(`${what}: the Git server answered ${answer.status}: ${JSON.stringify(answer.body)}`);
}
