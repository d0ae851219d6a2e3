import { type ChildProcess, spawn } from "node:child_process";
import { createHmac, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintRegistryToken, type RegistryAccess } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../../lib/exec.ts";
import { freePorts } from "../../lib/ports.ts";
import { waitFor } from "../../lib/wait.ts";
import { ensureBinary } from "../binaries.ts";
import { ensureAuthority, ensureCertificate } from "../certificates.ts";
import { type DaemonDirs, ensureDaemon, stopDaemon } from "../processes.ts";
import { ensureGitAccount, ensureSampleRepository, type GitAccount } from "./git-account.ts";
import { callGit } from "./git-api.ts";
import { type GitServer, gitUrl, prepareGitServer } from "./git-server.ts";
import { ensureRegistryKey, prepareRegistry } from "./registry.ts";

let folder: string;
let dirs: DaemonDirs;
let authority: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-builds-"));
  dirs = { run: join(folder, "run"), logs: folder };
  authority = (await ensureAuthority(folder, "ca")).cert;
});

afterAll(async () => {
  for (const name of ["git", "registry-builds"]) {
    await stopDaemon(name, 15_000, dirs);
  }
  await rm(folder, { recursive: true, force: true });
});

const certificate = async (name: string) =>
  ensureCertificate(folder, name, await ensureAuthority(folder, "ca"), {
    commonName: name,
    altNames: ["IP:127.0.0.1"],
  });

describe("the Git server", () => {
  let server: GitServer;
  let binary: string;
  let account: GitAccount;

  beforeAll(async () => {
    binary = await ensureBinary("gitea");
    const [port = 0] = await freePorts(1);
    server = {
      folder: join(folder, "git"),
      address: "127.0.0.1",
      port,
      tls: await certificate("git"),
      authority,
    };
    await ensureDaemon(await prepareGitServer(server, binary), dirs);
    account = await ensureGitAccount(server, binary);
    await ensureSampleRepository(server, account);
  });

  /** git as a client of the server: its authority, and a user's token where one is given, in the environment alone. */
  async function git(args: string[], token?: string): Promise<string> {
    const settings = [["http.sslCAInfo", authority]];
    const basic = Buffer.from(`${account.username}:${token}`).toString("base64");
    if (token) {
      settings.push(["http.extraHeader", `Authorization: Basic ${basic}`]);
    }
    const env: Record<string, string | undefined> = {
      GIT_SSL_CAINFO: undefined,
      GIT_TERMINAL_PROMPT: "0",
      GIT_CONFIG_COUNT: String(settings.length),
    };
    for (const role of ["AUTHOR", "COMMITTER"]) {
      env[`GIT_${role}_NAME`] = "Somebody";
      env[`GIT_${role}_EMAIL`] = "somebody@localhost";
    }
    for (const [index, [key, value]] of settings.entries()) {
      env[`GIT_CONFIG_KEY_${index}`] = key;
      env[`GIT_CONFIG_VALUE_${index}`] = value;
    }
    return run("git", args, { env });
  }

  test("its API answers over TLS by the stack's authority to the user's token, and to no other", async () => {
    const version = await callGit(server, account.token, "GET", "/version");
    expect(version).toEqual({ status: 200, body: { version: "1.26.0" } });
    const me = await callGit(server, account.token, "GET", "/user");
    expect(me.body).toMatchObject({ login: "slipway", is_admin: false });
    expect((await callGit(server, "0".repeat(40), "GET", "/user")).status).toBe(401);
    const other = (await ensureAuthority(join(folder, "other"), "ca")).cert;
    await expect(callGit({ ...server, authority: other }, account.token, "GET", "/user")).rejects.toThrow(
      /certificate/,
    );
  });

  test("started again it keeps running, with the same user, token and sample repository", async () => {
    expect(await ensureDaemon(await prepareGitServer(server, binary), dirs)).toBe("kept");
    expect(await ensureGitAccount(server, binary)).toEqual(account);
    await ensureSampleRepository(server, account);
    const commits = await callGit(server, account.token, "GET", "/repos/slipway/sample-node/commits");
    expect(commits.body).toHaveLength(1);
  });

  test("the sample repository is private, is cloned with the token, and its application answers on $PORT", async () => {
    const clone = join(folder, "sample");
    const address = `${gitUrl(server)}/slipway/sample-node.git`;
    await expect(git(["clone", "--quiet", address, clone])).rejects.toThrow();
    await git(["clone", "--quiet", address, clone], account.token);
    const manifest = JSON.parse(await readFile(join(clone, "package.json"), "utf8")) as {
      scripts: { start: string };
    };
    expect(manifest.scripts.start).toBe("node server.js");
    expect(JSON.parse(await readFile(join(clone, "package-lock.json"), "utf8"))).toMatchObject({
      lockfileVersion: 3,
    });
    const [port = 0] = await freePorts(1);
    const application: ChildProcess = spawn(process.execPath, ["server.js"], {
      cwd: clone,
      env: { PORT: String(port) },
      stdio: "ignore",
    });
    try {
      const answer = await waitFor("the sample", 20_000, async () => fetch(`http://127.0.0.1:${port}/here`));
      expect(await answer.json()).toMatchObject({ message: "Hello from Node", path: "/here" });
    } finally {
      application.kill();
      await once(application, "exit");
    }
  });

  test("a push makes a repository, and the next one calls its hook on this machine, signed", async () => {
    const work = join(folder, "pushed");
    await git(["init", "--quiet", "--initial-branch=main", work]);
    const commit = async (text: string): Promise<void> => {
      await writeFile(join(work, "index.html"), text);
      await git(["-C", work, "add", "."]);
      await git(["-C", work, "commit", "--quiet", "--message", text]);
      await git(
        ["-C", work, "push", "--quiet", `${gitUrl(server)}/slipway/pushed.git`, "main"],
        account.token,
      );
    };
    await commit("one");
    const deliveries: { event: unknown; signature: unknown; body: string }[] = [];
    const receiver = createServer((request, answer) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { "x-gitea-event": event, "x-gitea-signature": signature } = request.headers;
        deliveries.push({ event, signature, body: Buffer.concat(chunks).toString() });
        answer.end();
      });
    }).listen(0, "127.0.0.1");
    try {
      await once(receiver, "listening");
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      const config = { url, content_type: "json", secret: "a-secret" };
      const hook = { type: "gitea", active: true, events: ["push"], config };
      expect((await callGit(server, account.token, "POST", "/repos/slipway/pushed/hooks", hook)).status).toBe(
        201,
      );
      await commit("two");
      // The server delivers the first push too, if it had not done so before this one.
      const delivery = await waitFor("the hook's call", 20_000, async () =>
        deliveries.find(({ body }) => headMessage(body) === "two\n"),
      );
      const signature = createHmac("sha256", "a-secret").update(delivery.body).digest("hex");
      expect(delivery).toMatchObject({ event: "push", signature });
    } finally {
      receiver.closeAllConnections();
      receiver.close();
    }
  });

  test("its log and its process's arguments and environment contain no secret", async () => {
    const secrets = Object.values(
      JSON.parse(await readFile(join(server.folder, "secrets.json"), "utf8")) as object,
    );
    const log = await readFile(join(folder, "git.log"), "utf8");
    const pid = (JSON.parse(await readFile(join(dirs.run, "git.pid"), "utf8")) as { pid: number }).pid;
    const seen =
      log +
      (await readFile(`/proc/${pid}/cmdline`, "utf8")) +
      (await readFile(`/proc/${pid}/environ`, "utf8"));
    for (const secret of [...(secrets as string[]), account.token]) {
      expect(seen).not.toContain(secret);
    }
    // In a user namespace, without root, it is outside who started it.
    const user = process.getuid?.() === 0 ? "65530" : String(process.getuid?.());
    expect((await readFile(`/proc/${pid}/status`, "utf8")).match(/^Uid:\s+(\d+)/m)?.[1]).toBe(user);
  });
});

/** Message of the newest commit of a push. */
function headMessage(body: string): string | undefined {
  return (JSON.parse(body) as { head_commit?: { message?: string } }).head_commit?.message;
}

describe("the registry of builds", () => {
  const realm = "http://127.0.0.1:8081/registry/token";
  let host: string;
  let key: string;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    host = `127.0.0.1:${port}`;
    const places = { data: join(folder, "images"), config: join(folder, "registry.yaml"), keys: folder };
    const registry = { ...places, host, tls: await certificate("registry"), realm };
    await ensureDaemon(await prepareRegistry(registry, await ensureBinary("registry")), dirs);
    key = await readFile(await ensureRegistryKey(folder), "utf8");
  });

  /** Status and challenge of a request to the registry. */
  async function ask(
    method: "GET" | "POST",
    path: string,
    token?: string,
  ): Promise<{ status: number; challenge: string }> {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const options = { method, headers, ca: await readFile(authority), agent: false };
    return new Promise((resolve, reject) => {
      const sent = request(`https://${host}/v2/${path}`, options, (answer) => {
        answer.resume();
        resolve({ status: answer.statusCode ?? 0, challenge: answer.headers["www-authenticate"] ?? "" });
      });
      sent.on("error", reject);
      sent.end();
    });
  }

  const pushTo = (repository: string, token?: string) => ask("POST", `${repository}/blobs/uploads/`, token);
  const token = (access: RegistryAccess[], by = key, lifetime = 60, now?: Date) =>
    mintRegistryToken(by, "a-test", access, lifetime, now);
  const mine: RegistryAccess[] = [{ repository: "oone/pmine", actions: ["pull", "push"] }];

  test("without a token there is no access, and the answer names where to get one", async () => {
    const answer = await pushTo("oone/pmine");
    expect(answer.status).toBe(401);
    expect(answer.challenge).toContain(
      `realm="${realm}",service="slipway-registry",scope="repository:oone/pmine:`,
    );
    expect((await ask("GET", "")).status).toBe(401);
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: begins with another tenant's image, or with
  test("a token opens its own repository, and no other", async () => {
    expect((await pushTo("oone/pmine", token(mine))).status).toBe(202);
    for (const other of ["oone/pother", "otwo/pmine", "base/node"]) {
      expect((await pushTo(other, token(mine))).status).toBe(401);
    }
    expect((await ask("GET", "oone/pother/tags/list", token(mine))).status).toBe(401);
  });

  test("a token to pull pushes nothing; one that has ended or is by another key opens nothing", async () => {
    const pull: RegistryAccess[] = [{ repository: "oone/pmine", actions: ["pull"] }];
    expect((await ask("GET", "oone/pmine/tags/list", token(pull))).status).toBe(404);
    expect((await pushTo("oone/pmine", token(pull))).status).toBe(401);
    const hourAgo = new Date(Date.now() - 3_600_000);
    expect((await pushTo("oone/pmine", token(mine, key, 60, hourAgo))).status).toBe(401);
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const other = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    expect((await pushTo("oone/pmine", token(mine, other))).status).toBe(401);
  });
});
