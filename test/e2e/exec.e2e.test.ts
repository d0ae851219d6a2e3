import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { connectLedger, type Ledger } from "@slipway/ledger";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildsRegistryHost } from "../../hack/cluster/addresses.ts";
import { ExecClient, type ExecQuery, ExecRefused, PROTOCOL } from "../kit/api-server/exec-client.ts";
import { isLong } from "../kit/long.ts";
import { apiClient, deleteProjects, uniqueName, untilStatus } from "./support/api.ts";
import { createGitProject, untilBuilt } from "./support/builds.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { connectRepository, createRepository, type Repository } from "./support/git.ts";
import { systemNamespace } from "./support/operator.ts";
import { admin, createOrganization } from "./support/organization.ts";
import { processOf } from "./support/process.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { ledgerUrl } from "./support/stack-observer.ts";

/** Commands in instances: through the ingress, the API, the kube-apiserver and a real kubelet, in an image with a shell. */

const MIB = 1024 * 1024;
const OUTPUTS = isLong ? 100 : 10;

const call = apiClient();
let repository: Repository | undefined;
let project: string;
let instance: string;
let ledger: Ledger;

interface Key {
  readonly api_key_id: string;
  readonly api_key: string;
}
const keys: string[] = [];
async function createKey(organization: string, ...grants: string[]): Promise<Key> {
  const given = grants.flatMap((grant) => ["--grant", grant]);
  const key = await admin<Key>("api-key", "create", "--organization", organization, ...given);
  keys.push(key.api_key_id);
  return key;
}
const headersOf = ({ api_key: key }: Key) => ({ "x-api-key": key });
let headers: Record<string, string>;

beforeAll(async () => {
  repository = await createRepository(uniqueName("exec"), {
    Dockerfile: `FROM ${buildsRegistryHost}/base/node:24
COPY server.js /app/server.js
USER 1000:1000
CMD ["node", "/app/server.js"]
`,
    "server.js": `require("node:http").createServer((_, answer) => answer.end("here")).listen(8080);
process.on("SIGTERM", () => process.exit(0));
`,
  });
  const created = await createGitProject(call, uniqueName("exec"), await connectRepository(repository), {
    source: { auto_deploy: false },
    build: { runtime: "dockerfile", version: undefined, start_command: undefined },
    config: { envs: [{ name: "GREETING", value: "from its variables" }] },
  });
  project = created.project_id;
  await untilBuilt(call, project, created.build_id);
  await untilStatus(call, project, "running");
  const labelSelector = `slipway.dev/project=${project}`;
  const { items } = await cluster.core.listNamespacedPod({
    namespace: namespaceOf(stack.organization),
    labelSelector,
    fieldSelector: "status.phase=Running",
  });
  instance = items[0]?.metadata?.name ?? "";
  headers = headersOf(await createKey(stack.organization, "project.exec on project:*"));
  ledger = connectLedger({ url: await ledgerUrl(), applicationName: "observer" });
}, 1_500_000);
afterAll(async () => {
  for (const id of keys) {
    await admin("api-key", "revoke", "--id", id);
  }
  await deleteProjects(call, project ? [project] : []);
  await repository?.remove();
  await ledger?.destroy();
});

const run = (query: ExecQuery & { input?: string | Buffer }) =>
  ExecClient.run(stack.url, project, instance, query, headers);
const connect = (query: ExecQuery, as = headers) =>
  ExecClient.connect(stack.url, project, instance, query, as);
const shell = (script: string): ExecQuery => ({ command: ["sh", "-c", script] });
const refused = (session: Promise<ExecClient>): Promise<string> =>
  session.then(
    () => "accepted",
    (error: unknown) =>
      error instanceof ExecRefused ? `${error.status} ${error.body.code}` : Promise.reject(error),
  );

// Shows: docs/exec.md#protocol: 3 | the status of the command
test("a command has the application's variables, and ends with its own exit code", async () => {
  expect(await run(shell('echo "$GREETING"; echo "to stderr" >&2; exit 7'))).toMatchObject({
    exitCode: 7,
    stdout: "from its variables\n",
    stderr: "to stderr\n",
    closeCode: 1000,
    closeReason: "EXEC_EXITED",
  });
  expect(await run({ command: ["true"] })).toMatchObject({ exitCode: 0 });
  expect(await run(shell("kill -9 $$"))).toMatchObject({ exitCode: 137 });
  expect((await run({ command: ["/no/such/program"] })).exitCode).not.toBe(0);
});

// Shows: docs/exec.md#protocol: 255 | the client sends
test("a command reads its input to the end, whatever its bytes", async () => {
  const input = randomBytes(3 * MIB);
  const session = await connect({ command: ["sha256sum"], stdin: true });
  for (let at = 0; at < input.length; at += 64 * 1024) {
    session.send(input.subarray(at, at + 64 * 1024));
  }
  session.endInput();
  const { exitCode, stdout } = await session.ended();
  expect([exitCode, stdout.slice(0, 64)]).toEqual([0, createHash("sha256").update(input).digest("hex")]);
});

// Shows: docs/exec.md#protocol: 4 | the size of the terminal
test("a shell has a terminal that is resized, and ends with it", async () => {
  const session = await connect({ command: ["bash", "--norc"], stdin: true, tty: true });
  session.resize(132, 43);
  await sleep(1_000);
  session.send("stty size; stty -echo\n");
  await eventually(async () => expect(session.stdout).toContain("43 132"));
  session.resize(80, 24);
  await sleep(1_000);
  session.send("stty size; exit 3\n");
  const { exitCode, stdout } = await session.ended();
  expect(stdout).toContain("24 80");
  expect(exitCode).toBe(3);
});

// Shows: docs/exec.md#bounds: outputs are exact
test(`${OUTPUTS} of ${OUTPUTS} outputs of 10 MiB are exact`, { timeout: 600_000 }, async () => {
  const script = `f=$(mktemp /dev/shm/XXXXXX) && head -c ${10 * MIB} /dev/urandom >"$f" && sha256sum "$f" >&2 && cat "$f"; rm "$f"`;
  let exact = 0;
  const started = performance.now();
  for (let output = 0; output < OUTPUTS; output += 1) {
    const { exitCode, stderr, stdoutBytes, stdoutSha256 } = await run(shell(script));
    const isExact = exitCode === 0 && stdoutBytes === 10 * MIB && stderr.slice(0, 64) === stdoutSha256;
    exact += isExact ? 1 : 0;
  }
  console.log(`${exact} of ${OUTPUTS} outputs of 10 MiB in ${Math.round(performance.now() - started)} ms`);
  expect(exact).toBe(OUTPUTS);
});

// Shows: docs/exec.md#who-may: a session ends within 5 s after its key
test("a session ends within five seconds after its key is revoked", async () => {
  const key = await createKey(stack.organization, "project.exec on project:*");
  const sessions = await Promise.all(
    Array.from({ length: 4 }, () => connect({ command: ["cat"], stdin: true }, headersOf(key))),
  );
  await admin("api-key", "revoke", "--id", key.api_key_id);
  const revoked = performance.now();
  const ends = await Promise.all(sessions.map((session) => session.ended()));
  const took = performance.now() - revoked;
  console.log(`ended ${Math.round(took)} ms after the key was revoked`);
  expect(took).toBeLessThan(5_000);
  for (const { closeCode, closeReason } of ends) {
    expect([closeCode, closeReason]).toEqual([4403, "EXEC_ACCESS_REVOKED"]);
  }
  expect(await refused(connect(shell("true"), headersOf(key)))).toBe("401 CREDENTIAL_INVALID");
});

// Shows: docs/exec.md#who-may: the scope is `project.exec`
test("needs a grant by its name; another organization sees no project", async () => {
  expect(await refused(connect(shell("true"), { "x-api-key": stack.apiKey }))).toBe("403 PERMISSION_DENIED");
  const foreign = await createOrganization(uniqueName("exec"));
  const theirs = await createKey(foreign.organization_id, "project.exec on project:*");
  expect(await refused(connect(shell("true"), headersOf(theirs)))).toBe("404 PROJECT_NOT_FOUND");
  const owner = `base64url.bearer.authorization.k8s.io.${Buffer.from(stack.ownerToken).toString("base64url")}`;
  const offers = [PROTOCOL, owner, `organization.slipway.dev.${stack.organization}`];
  const session = await ExecClient.connect(stack.url, project, instance, shell("exit 4"), {}, offers);
  expect((await session.ended()).exitCode).toBe(4);
});

/** Bytes of memory of every API server. */
async function memory(): Promise<number> {
  const labelSelector = "app.kubernetes.io/name=slipway-api-server";
  const { items } = await cluster.core.listNamespacedPod({ namespace: systemNamespace, labelSelector });
  const running = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  const each = running.map(async ({ metadata }) => {
    const id = await processOf(metadata?.name ?? "", "dist/api-server.js");
    const status = await readFile(`/proc/${id}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  });
  return (await Promise.all(each)).reduce((sum, bytes) => sum + bytes, 0);
}

// Shows: docs/exec.md#bounds: a client that does not read
test("clients that never read cost the API little memory, and lose nothing", {
  timeout: 120_000,
}, async () => {
  const before = await memory();
  const sessions = await Promise.all(
    Array.from({ length: 6 }, () => connect(shell(`head -c ${200 * MIB} /dev/zero`))),
  );
  for (const { socket } of sessions) {
    socket.pause();
  }
  await sleep(10_000);
  const grown = (await memory()) - before;
  console.log(`${Math.round(grown / MIB)} MiB more with 1,200 MiB of output that nobody reads`);
  expect(grown).toBeLessThan(64 * MIB);
  const [first, ...others] = sessions;
  for (const { socket } of others) {
    socket.terminate();
  }
  first?.socket.resume();
  expect(await first?.ended()).toMatchObject({ exitCode: 0, stdoutBytes: 200 * MIB });
});

// Shows: docs/exec.md#audit: `operation`
// Shows: docs/exec.md#audit: `code`
test("a session is in the audit log from before its command, without what passed", async () => {
  const word = uniqueName("audited");
  const session = await connect({
    command: ["sh", "-c", `read typed; echo "$typed"; : ${word}; exit 2`],
    stdin: true,
  });
  const rows = () =>
    ledger.selectFrom("audit_log").selectAll().where("operation", "like", `execInstance %${word}%`).execute();
  expect(await rows()).toMatchObject([
    { organization_id: stack.organization, project_id: project, status: null, finished_at: null },
  ]);
  session.send("hunter2\n");
  await session.ended();
  const [row] = await eventually(async () => {
    const found = await rows();
    expect(found[0]?.status).toBe(101);
    return found;
  });
  expect(row?.actor).toMatch(/^api-key:/);
  expect(row?.code).toBe('EXEC_EXITED {"exit_code":2,"stdin_bytes":8,"stdout_bytes":8,"stderr_bytes":0}');
  expect(row?.operation).toContain(`"instance":"${instance}"`);
  expect(JSON.stringify(row)).not.toContain("hunter2");
});
