import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { labels, organizationNamespace } from "@slipway/crds";
import { type Ledger, setOrganizationBlocked } from "@slipway/ledger";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startTestCluster } from "../../../hack/cluster/test-cluster.ts";
import { ExecClient, type ExecQuery, ExecRefused } from "../../../test/kit/api-server/exec-client.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { installDefinitions, slipwayDefinitions } from "../../../test/kit/clusters/definitions.ts";
import { isLong } from "../../../test/kit/long.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { LedgerAuditLog } from "../audit/log.ts";
import { projectResource } from "../resources.ts";

/**
 * Sessions over a real kube-apiserver, and nodes (kwok) that run their commands on this machine behind the kubelet's own streaming
 * server: exit codes, terminals and bytes are real.
 */

const INSTANCE = "shop-6d4cf56db6-x7k2p";
const MIB = 1024 * 1024;
const OUTPUTS = isLong ? 100 : 10;

let harness: RealHarness;
let base: string;
let organization: { id: string; headers: Record<string, string> };
let headers: Record<string, string>;

beforeAll(async () => {
  const apiserver = await startTestCluster({
    nodes: 1,
    controllers: ["namespace-controller"],
    runsCommands: true,
  });
  const client = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
  await installDefinitions(client, await slipwayDefinitions());
  await client.close();
  const nobody = { lost: () => undefined, unrecorded: () => undefined };
  const audit = (ledger: Ledger) => new LedgerAuditLog(ledger, pino({ level: "silent" }), nobody);
  harness = await startRealHarness({ apiserver, audit, exec: { limits: { recheckMs: 200 } } });
  base = await harness.app.listen({ port: 0, host: "127.0.0.1" });
  organization = await harness.organization();
  headers = harness.key(organization.id, "project.exec on project:*");
  await harness.project(organization.id, "shop");
  await pod("shop", INSTANCE);
});
afterAll(() => harness?.close());
afterEach(async () => {
  for (const { socket } of clients.splice(0)) {
    socket.terminate();
  }
  await eventually("no session to be left", () => harness.services.exec.size === 0);
});

/** An instance of a project that runs for an hour. */
async function pod(project: string, name: string, args = ["run=3600"], container = "app"): Promise<void> {
  const namespace = organizationNamespace(organization.id);
  await harness.admin.create<KubernetesObject & { spec: object }>(resources.pods, {
    metadata: { name, namespace, labels: { [labels.project]: project } },
    spec: { restartPolicy: "Never", containers: [{ name: container, image: "example.test/app:1", args }] },
  });
  await eventually(`${name} to run`, async () => {
    const seen = await harness.admin.get<KubernetesObject & { status?: { phase?: string } }>(resources.pods, {
      namespace,
      name,
    });
    return seen.status?.phase === (args.includes("stuck") ? "Pending" : "Running");
  });
}

const run = (query: ExecQuery & { input?: string | Buffer }) =>
  ExecClient.run(base, "shop", INSTANCE, query, headers);
const clients: ExecClient[] = [];
const connect = async (query: ExecQuery, as = headers, project = "shop", instance = INSTANCE) => {
  const client = await ExecClient.connect(base, project, instance, query, as);
  clients.push(client);
  return client;
};
const shell = (script: string): ExecQuery => ({ command: ["sh", "-c", script] });
const refused = async (session: Promise<ExecClient>) => {
  const error: unknown = await session.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ExecRefused);
  const { status, body } = error as ExecRefused;
  return `${status} ${body.code}`;
};

interface Node extends KubernetesObject {
  status: { daemonEndpoints: { kubeletEndpoint: { Port: number } } };
}

interface Row {
  operation: string;
  actor: string;
  status: number | null;
  code: string | null;
  project_id: string | null;
  finished_at: Date | null;
}
const rows = (like: string): Promise<Row[]> =>
  harness.ledger.selectFrom("audit_log").selectAll().where("operation", "like", like).orderBy("id").execute();

describe("a command in an instance", () => {
  // Shows: docs/exec.md#over-v1: `GET /v1/project/:id/instances/:instance/exec`
  // Shows: docs/exec.md#protocol: 1 | output; with
  // Shows: docs/exec.md#protocol: 2 | the other output
  it("has its outputs apart, and ends with the status of its node", async () => {
    // kwok reports no exit codes but 0.
    const outcome = await run(shell("echo to stdout; echo to stderr >&2; exit 7"));
    expect(outcome).toMatchObject({
      exitCode: undefined,
      stdout: "to stdout\n",
      stderr: "to stderr\n",
      closeCode: 1000,
      closeReason: "EXEC_EXITED",
    });
    expect(await run({ command: ["true"] })).toMatchObject({ exitCode: 0, stdout: "" });
    expect(await run({ command: ["/no/such/program"] })).toMatchObject({ closeReason: "EXEC_EXITED" });
  });

  it("is no shell: its words arrive as they are", async () => {
    const words = ["a b", "", "$HOME", "é;*"];
    const { stdout } = await run({ command: ["printf", "[%s]", ...words] });
    expect(Buffer.from(stdout, "latin1").toString()).toBe("[a b][][$HOME][é;*]");
  });

  // Shows: docs/exec.md#protocol: 0 | input, sent by the client
  it("reads its input, whatever its bytes", async () => {
    const input = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 31) % 256));
    const outcome = await run({ command: ["head", "-c", String(input.length)], input });
    expect(outcome.stdoutSha256).toBe(createHash("sha256").update(input).digest("hex"));
    expect(outcome.exitCode).toBe(0);
  });

  // Shows: docs/exec.md#protocol: 4 | the size of the terminal
  it("has a terminal that is resized", async () => {
    const session = await connect({ command: ["sh"], stdin: true, tty: true });
    session.resize(132, 43);
    await sleep(300);
    session.send("stty size; stty -echo; tty -s && echo it is one\n");
    await eventually("its size", () => session.stdout.includes("43 132"));
    session.resize(80, 24);
    await sleep(300);
    session.send("stty size\n");
    // Before its end: kwok does not read the rest of a terminal whose command has ended.
    await eventually("its other size", () => session.stdout.includes("24 80"));
    session.send("exit 0\n");
    const { exitCode, stdout } = await session.ended();
    expect(stdout).toContain("it is one");
    expect(exitCode).toBe(0);
  });

  // Shows: docs/exec.md#bounds: outputs are exact
  it(`writes 10 MiB without a byte lost, wrong or twice, ${OUTPUTS} times`, async () => {
    const script = `head -c ${10 * MIB} /dev/urandom > "$0"; sha256sum "$0" >&2; cat "$0"; rm "$0"`;
    for (let attempt = 0; attempt < OUTPUTS; attempt += 1) {
      const outcome = await run({ command: ["sh", "-c", script, `exec-bytes-${process.pid}-${attempt}`] });
      expect(outcome).toMatchObject({ exitCode: 0, stdoutBytes: 10 * MIB });
      expect(outcome.stderr.slice(0, 64)).toBe(outcome.stdoutSha256);
    }
  });
});

describe("who may run it", () => {
  // Shows: docs/exec.md#who-may: the scope is `project.exec`
  // Shows: docs/exec.md#who-may: no key has it by `*`
  it("needs a grant of its own, which everything does not include, and an owner has", async () => {
    const named = ["project.read on project:*", "project.exec on project:other"];
    expect(await refused(connect(shell("true"), organization.headers))).toBe("403 PERMISSION_DENIED");
    expect(await refused(connect(shell("true"), harness.key(organization.id, ...named)))).toBe(
      "403 PERMISSION_DENIED",
    );
    expect(await refused(connect(shell("true"), {}))).toBe("401 CREDENTIAL_MISSING");
    const owner = await harness.owner(organization.id);
    expect(await (await connect(shell("true"), owner)).ended()).toMatchObject({ exitCode: 0 });
  });

  // Shows: docs/exec.md#who-may: a browser, which sets no headers
  it("takes the credential of a browser from a subprotocol, and answers none of it", async () => {
    const bearer = `base64url.bearer.authorization.k8s.io.${Buffer.from(headers["x-api-key"] ?? "").toString("base64url")}`;
    const organizationProtocol = `organization.slipway.dev.${organization.id}`;
    const offers = ["v5.channel.k8s.io", bearer, organizationProtocol];
    const session = await ExecClient.connect(base, "shop", INSTANCE, shell("true"), {}, offers);
    expect(session.socket.protocol).toBe("v5.channel.k8s.io");
    expect((await session.ended()).exitCode).toBe(0);
    const wrong = bearer.replace("k8s.io.", "k8s.io.AA");
    expect(
      await refused(
        ExecClient.connect(base, "shop", INSTANCE, shell("true"), {}, ["v5.channel.k8s.io", wrong]),
      ),
    ).toBe("401 CREDENTIAL_INVALID");
    expect(harness.logged()).not.toContain(bearer);
  });

  // Shows: docs/exec.md#who-may: a project or an instance of others
  // Shows: docs/exec.md#refusals: 404 | `INSTANCE_NOT_FOUND`
  // Shows: docs/exec.md#refusals: 409 | `INSTANCE_NOT_RUNNING`
  it("shows no project and no instance of another organization or project", async () => {
    const foreign = await harness.organization();
    const theirs = harness.key(foreign.id, "project.exec on project:*");
    expect(await refused(connect(shell("true"), theirs))).toBe("404 PROJECT_NOT_FOUND");
    await harness.project(organization.id, "other");
    await pod("other", "other-0");
    await pod("shop", "shop-sidecar-only", ["run=3600"], "sidecar");
    await pod("shop", "shop-stuck", ["stuck"]);
    const on = (instance: string) => refused(connect(shell("true"), headers, "shop", instance));
    expect(await on("other-0")).toBe("404 INSTANCE_NOT_FOUND");
    expect(await on("no-such-pod")).toBe("404 INSTANCE_NOT_FOUND");
    expect(await on("shop-sidecar-only")).toBe("409 INSTANCE_NOT_RUNNING");
    expect(await on("shop-stuck")).toBe("409 INSTANCE_NOT_RUNNING");
  });
});

describe("a session", () => {
  // Shows: docs/exec.md#audit: `operation`
  // Shows: docs/exec.md#audit: `code`
  it("is audited before its command runs and when it has ended, without what was typed or written", async () => {
    const session = await connect({
      command: ["sh", "-c", "read secret; echo $secret"],
      stdin: true,
    });
    const [begun] = (await rows("execInstance {%read secret%")) as [Row];
    expect(begun).toMatchObject({
      status: null,
      project_id: "shop",
      actor: expect.stringMatching(/^api-key:/),
    });
    expect(JSON.parse(begun.operation.replace("execInstance ", ""))).toEqual({
      instance: INSTANCE,
      stdin: true,
      tty: false,
      command: ["sh", "-c", "read secret; echo $secret"],
    });
    session.send("hunter2\n");
    await session.ended();
    await expect.poll(async () => (await rows("execInstance {%read secret%"))[0]?.status).toBe(101);
    const [ended] = (await rows("execInstance {%read secret%")) as [Row];
    const [code, ...about] = (ended.code ?? "").split(" ");
    expect(code).toBe("EXEC_EXITED");
    expect(JSON.parse(about.join(" "))).toEqual({
      exit_code: 0,
      stdin_bytes: 8,
      stdout_bytes: 8,
      stderr_bytes: 0,
    });
    expect(ended.finished_at).not.toBeNull();
    expect(JSON.stringify(await rows("%"))).not.toContain("hunter2");
    expect(harness.logged()).not.toContain("hunter2");
  });

  const closedWithin = async (session: ExecClient, withinMs: number) => {
    const started = performance.now();
    const { closeCode, closeReason } = await session.ended();
    expect(performance.now() - started).toBeLessThan(withinMs);
    return `${closeCode} ${closeReason}`;
  };

  // Shows: docs/exec.md#who-may: a session ends within 5 s after its key
  // Shows: docs/exec.md#ends: 4403 | `EXEC_ACCESS_REVOKED`
  it("ends within five seconds after its key is revoked, or lost its grant", async () => {
    const key = () => harness.key(organization.id, "project.exec on project:*", "project.read on project:*");
    const [revoked, withdrawn] = [key(), key()];
    const sessions = [
      await connect(shell("sleep 60"), revoked),
      await connect(shell("sleep 60"), withdrawn),
    ] as const;
    harness.revoke(revoked);
    harness.revoke(withdrawn, "project.read on project:*");
    expect(await Promise.all(sessions.map((session) => closedWithin(session, 5_000)))).toEqual([
      "4403 EXEC_ACCESS_REVOKED",
      "4403 EXEC_ACCESS_REVOKED",
    ]);
  });

  // Shows: docs/exec.md#who-may: a session ends within 5 s after its organization
  // Shows: docs/exec.md#ends: 4402 | `EXEC_ORGANIZATION_BLOCKED`
  // Shows: docs/exec.md#ends: 4404 | `EXEC_PROJECT_DELETED`
  // Shows: docs/exec.md#refusals: 402 | `ORGANIZATION_BLOCKED`
  it("ends within five seconds after its organization is blocked, which starts none, or its project is deleted", async () => {
    const other = await harness.organization();
    const as = harness.key(other.id, "project.exec on project:*");
    const namespace = organizationNamespace(other.id);
    await harness.project(other.id, "cart");
    const before = organization;
    organization = other;
    await pod("cart", "cart-0");
    organization = before;
    const first = await connect(shell("sleep 60"), as, "cart", "cart-0");
    await setOrganizationBlocked(harness.ledger, other.id, true);
    expect(await closedWithin(first, 5_000)).toBe("4402 EXEC_ORGANIZATION_BLOCKED");
    expect(await refused(connect(shell("true"), as, "cart", "cart-0"))).toBe("402 ORGANIZATION_BLOCKED");
    await setOrganizationBlocked(harness.ledger, other.id, false);
    const second = await connect(shell("sleep 60"), as, "cart", "cart-0");
    await harness.admin.delete(projectResource, { namespace, name: "cart" });
    expect(await closedWithin(second, 5_000)).toBe("4404 EXEC_PROJECT_DELETED");
  });

  it("buffers a bounded part of an output that its client does not read, and goes on once it does", async () => {
    // How much of it the command could write shows how much waits on all of its way, socket buffers included.
    const progress = join(await mkdtemp(join(tmpdir(), "slipway-exec-")), "mib");
    const session = await connect(
      shell(`for i in $(seq 64); do head -c ${MIB} /dev/zero || exit; echo $i > ${progress}; done`),
    );
    session.socket.pause();
    const written = async () => Number(await readFile(progress, "utf8").catch(() => "0"));
    const held = await eventually("the command to be held", async () => {
      const before = await written();
      await sleep(2_000);
      return before > 0 && (await written()) === before && before;
    });
    expect(held).toBeLessThan(48);
    session.socket.resume();
    expect(await session.ended()).toMatchObject({ stderr: "", exitCode: 0, stdoutBytes: 64 * MIB });
    await rm(dirname(progress), { recursive: true });
  });

  // Shows: docs/exec.md#bounds: one message of a client
  // Shows: docs/exec.md#ends: 1009 | `EXEC_MESSAGE_TOO_LARGE`
  it("ends when its client sends what no client may", async () => {
    const one = await connect(shell("sleep 60"));
    one.send("there is no input");
    expect(await closedWithin(one, 5_000)).toBe("1008 EXEC_PROTOCOL_ERROR");
    const two = await connect({ command: ["cat"], stdin: true });
    two.send(Buffer.alloc(128 * 1024));
    expect(await two.ended()).toMatchObject({ closeCode: 1009, closeReason: "" });
    await expect
      .poll(async () => (await rows('execInstance {%"cat"%')).at(-1)?.code ?? "")
      .toContain("EXEC_MESSAGE_TOO_LARGE");
  });

  // Shows: docs/exec.md#ends: none | `EXEC_CLIENT_CLOSED`
  it("ends the command's connection when the client disconnects, and frees its place", async () => {
    await eventually("no session", () => harness.services.exec.size === 0);
    const session = await connect({ command: ["sh", "-c", "read line; exit 1"], stdin: true });
    expect(harness.services.exec.size).toBe(1);
    session.socket.terminate();
    await eventually("its place", () => harness.services.exec.size === 0);
    await expect
      .poll(async () => (await rows("execInstance {%read line%")).at(-1)?.code ?? "")
      .toContain("EXEC_CLIENT_CLOSED");
  });

  // Shows: docs/exec.md#bounds: sessions of one replica
  // Shows: docs/exec.md#refusals: 409 | `EXEC_SESSION_LIMIT_REACHED`
  it("is one of eight of a project, and of sixteen of an organization", async () => {
    const sessions: ExecClient[] = [];
    for (let count = 0; count < 8; count += 1) {
      sessions.push(await connect({ command: ["cat"], stdin: true }));
    }
    const error = await connect(shell("true")).catch((reason: ExecRefused) => reason);
    expect((error as ExecRefused).body).toMatchObject({
      code: "EXEC_SESSION_LIMIT_REACHED",
      scope: "project",
      limit: 8,
    });
    await Promise.all(sessions.map((session) => session.close()));
    await eventually("their places", () => harness.services.exec.size === 0);
  });

  // Shows: docs/exec.md#protocol: 3 | the status of the command
  it("says by its status that its node does not answer", async () => {
    const port = async (change: number) => {
      const node = await harness.admin.get<Node>(resources.nodes, { name: "node-0" });
      const { Port } = node.status.daemonEndpoints.kubeletEndpoint;
      const status = { daemonEndpoints: { kubeletEndpoint: { Port: Port + change } } };
      await harness.admin.patch(resources.nodes, { name: "node-0" }, { status }, { subresource: "status" });
    };
    await port(-1);
    const outcome = await run(shell("true"));
    await port(1);
    expect(outcome).toMatchObject({ exitCode: undefined, stdoutBytes: 0, closeReason: "EXEC_EXITED" });
  });

  // Shows: docs/exec.md#ends: 1001 | `EXEC_SERVER_ENDING`
  it("is closed when the API server ends, which starts no other", async () => {
    const session = await connect({ command: ["cat"], stdin: true });
    await harness.services.exec.endAll();
    expect(await closedWithin(session, 1_000)).toBe("1001 EXEC_SERVER_ENDING");
    expect(await refused(connect(shell("true")))).toBe("503 SERVER_BUSY");
  });
});
