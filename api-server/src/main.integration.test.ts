import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeClient } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import {
  connectLedger,
  insertApiKey,
  insertOrganization,
  migrateToLatest,
  recordBuild,
  removeMember,
  setMember,
} from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts } from "../../hack/lib/ports.ts";
import { exampleSpec } from "../../test/kit/api-server/harness.ts";
import { AUDIENCE, startIssuer } from "../../test/kit/api-server/issuer.ts";
import { fakeKubeconfig } from "../../test/kit/api-server/kubeconfig.ts";
import { FakeApiserver } from "../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";
import { startPostgres, type TestPostgres } from "../../test/kit/servers/postgresql.ts";
import { generateApiKey } from "./auth/credentials.ts";
import { oidcUserId } from "./auth/oidc.ts";
import { projectResource } from "./resources.ts";

/** The process as it runs in a pod: its start, its ports, its end. */

const directory = mkdtempSync(join(tmpdir(), "slipway-main-"));
const main = new URL("main.ts", import.meta.url).pathname;

let postgres: TestPostgres;
let apiserver: FakeApiserver;
let key: string;
let env: NodeJS.ProcessEnv;
let api: string;
let ops: string;

beforeAll(async () => {
  [postgres, apiserver] = await Promise.all([startPostgres(), FakeApiserver.start()]);
  const ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: "acme", name: "Acme" });
  const generated = generateApiKey();
  key = generated.key;
  await insertApiKey(ledger, {
    id: generated.id,
    organizationId: "acme",
    prefix: "slw",
    sha256: generated.sha256,
    grants: [{ permission: "*", resource: "project:*" }],
  });
  await ledger.destroy();
  const { privateKey } = generateKeyPairSync("ed25519");
  writeFileSync(join(directory, "token.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
  writeFileSync(join(directory, "kubeconfig"), fakeKubeconfig(apiserver.url));
  const [port, metricsPort] = await freePorts(2);
  api = `http://127.0.0.1:${port}`;
  ops = `http://127.0.0.1:${metricsPort}`;
  env = {
    PATH: process.env.PATH ?? "",
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    SLIPWAY_LEDGER_URL: postgres.url,
    SLIPWAY_CATALOG_FILE: new URL("../../charts/slipway/files/catalog.yaml", import.meta.url).pathname,
    SLIPWAY_TOKEN_KEY_FILE: join(directory, "token.pem"),
    SLIPWAY_RATE_LIMIT_SCALE: "1000000",
    SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
    SLIPWAY_PORT: String(port),
    SLIPWAY_METRICS_PORT: String(metricsPort),
    SLIPWAY_DRAIN_SECONDS: "1",
    KUBECONFIG: join(directory, "kubeconfig"),
  };
});

afterAll(async () => {
  await apiserver?.stop();
  await postgres?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(more: Record<string, string> = {}): Promise<ChildProcess> {
  const child = spawn(process.execPath, [main], {
    env: { ...env, ...more },
    stdio: ["ignore", "pipe", "pipe"],
  });
  await eventually("readiness", () => status(`${ops}/readyz`).then((code) => code === 200), 90_000);
  return child;
}

const status = (url: string) =>
  fetch(url).then(
    (response) => response.status,
    () => 0,
  );

describe("the API server's process", () => {
  // Shows: docs/applications.md#conventions: no answer is lost with several replicas, nor when one stops
  it("continues to serve while it drains: no request fails, and it ends automatically", async () => {
    const child = await start({ SLIPWAY_DRAIN_SECONDS: "4" });
    const answers: number[] = [];
    let draining = true;
    const loop = async () => {
      while (draining) {
        const response = await fetch(`${api}/v1/project`, { headers: { "x-api-key": key } });
        await response.arrayBuffer();
        answers.push(response.status);
        await sleep(5);
      }
    };
    const clients = [loop(), loop(), loop()];
    await eventually("answers", () => answers.length > 10);
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    await eventually("unreadiness", () => status(`${ops}/readyz`).then((code) => code === 503));
    const before = answers.length;
    await eventually("answers while it drains", () => answers.length > before + 50);
    // Routers have noticed by now and send nothing more.
    draining = false;
    await Promise.all(clients);
    expect(await exited).toEqual([0, null]);
    expect(new Set(answers)).toEqual(new Set([200]));
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/builds/:buildId/logs` | lines
  it("ends streams of logs when it ends, without saying that the build has", async () => {
    const ledger = connectLedger({ url: postgres.url, applicationName: "test" });
    const kube = KubeClient.forUrl(apiserver.url);
    const { metadata } = await kube.create<Project>(projectResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Project",
      metadata: { name: "pstream", namespace: organizationNamespace("acme") },
      spec: exampleSpec,
    } as Project);
    const build = {
      organization_id: "acme",
      project_id: "pstream",
      project_uid: metadata.uid ?? "",
      id: "bstream",
      triggered_by: "manual",
      branch: "main",
      tag: null,
      commit_sha: "a".repeat(40),
      commit_message: null,
      status: "building" as const,
      digest: null,
      error_code: null,
      error_message: null,
      created_at: new Date(),
      started_at: new Date(),
      finished_at: null,
    };
    await recordBuild(ledger, build);
    const child = await start({ SLIPWAY_DRAIN_SECONDS: "0" });
    const headers = { "x-api-key": key, accept: "text/event-stream" };
    const response = await fetch(`${api}/v1/project/pstream/builds/bstream/logs`, { headers });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    expect(await response.text()).not.toContain("event: end");
    expect(await exited).toEqual([0, null]);
    await kube.delete(projectResource, { namespace: organizationNamespace("acme"), name: "pstream" });
    await kube.close();
    await ledger.destroy();
  });

  // Shows: docs/git.md#over-v1: `GET /v1/git/runtime-catalog` | `runtimes`: `id`, `name`, `available`
  it("offers the runtimes that it has images for, and none where nothing is built", async () => {
    const file = join(directory, "builds.yaml");
    writeFileSync(
      file,
      '{image: builder, registry: {host: builds}, baseImages: {node: {"24": builds/base/node:24}}}',
    );
    const offered = async (more: Record<string, string>) => {
      const child = await start(more);
      const response = await fetch(`${api}/v1/git/runtime-catalog`, { headers: { "x-api-key": key } });
      const { data } = (await response.json()) as {
        data: { runtimes: { id: string; available: boolean }[] };
      };
      child.kill("SIGKILL");
      await once(child, "exit");
      return data.runtimes.filter(({ available }) => available).map(({ id }) => id);
    };
    expect(await offered({ SLIPWAY_BUILDS_FILE: file })).toEqual(["node", "dockerfile"]);
    expect(await offered({})).toEqual([]);
  });

  it("counts requests by operation and class, and answers nothing else on that port", async () => {
    const child = await start();
    await status(`${api}/v1/project`);
    await status(`${api}/nowhere`);
    const text = await (await fetch(`${ops}/metrics`)).text();
    expect(text).toContain('slipway_api_requests_total{operation="listProjects",class="4xx"} 1');
    expect(text).toContain('slipway_api_requests_total{operation="none",class="4xx"} 1');
    expect(text).toContain("slipway_api_projects 0");
    expect(await status(`${ops}/v1/project`)).toBe(404);
    expect(await status(`${ops}/healthz`)).toBe(200);
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  it("answers bytes that are no HTTP in the envelope, and lives on", async () => {
    const child = await start();
    const socket = connect(Number(new URL(api).port), "127.0.0.1");
    socket.write("NONSENSE\r\n\r\n");
    let received = "";
    for await (const chunk of socket) {
      received += chunk;
    }
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(received.split("\r\n\r\n")[1] ?? "")).toMatchObject({
      status: "failed",
      code: "MALFORMED_REQUEST",
    });
    expect(await status(`${api}/v1/project/plans`)).toBe(200);
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  // Shows: docs/applications.md#catalogs: the catalog file is reloaded; a wrong one changes nothing
  it("shows another catalog seconds after its file has changed, and keeps the last valid one", async () => {
    const text = readFileSync(env.SLIPWAY_CATALOG_FILE ?? "", "utf8");
    const file = join(directory, "catalog.yaml");
    writeFileSync(file, text);
    const child = await start({ SLIPWAY_CATALOG_FILE: file });
    const hourly = async () => {
      const { data } = (await (await fetch(`${api}/v1/project/plans`)).json()) as {
        data: { plan: string; prices: { hourly: number } }[];
      };
      return data.find(({ plan }) => plan === "basic")?.prices.hourly;
    };
    expect(await hourly()).toBe(3);
    writeFileSync(file, text.replace('{ hourly: "3", monthly', '{ hourly: "3.25", monthly'));
    await eventually("the new price", async () => (await hourly()) === 3.25, 10_000);
    writeFileSync(file, "httpPlans: []");
    await sleep(6_000);
    expect(await hourly()).toBe(3.25);
    writeFileSync(file, text.replace("jobsEnabled: true", "jobsEnabled: false"));
    await eventually("no jobs", async () => (await status(`${api}/v1/project/job/plans`)) === 503, 10_000);
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  // Shows: docs/applications.md#authentication: 1. tokens of an OpenID Connect issuer, by configuration
  it("admits members of the organization by tokens of a configured issuer", async () => {
    const issuer = await startIssuer("main");
    const oidc = JSON.stringify([{ issuer: issuer.url, audience: AUDIENCE }]);
    const ledger = connectLedger({ url: postgres.url, applicationName: "test" });
    const child = await start({ SLIPWAY_OIDC_ISSUERS: oidc });
    const list = async (sub: string) => {
      const authorization = `Bearer ${await issuer.token({ sub })}`;
      const headers = { authorization, "x-organization-id": "acme" };
      return (await fetch(`${api}/v1/project`, { headers })).status;
    };
    const member = { userId: oidcUserId(issuer.url, "ada"), organizationId: "acme", role: "member" as const };
    await setMember(ledger, { ...member, grants: [] });
    expect(await list("ada")).toBe(200);
    expect(await list("somebody-else")).toBe(403);
    await removeMember(ledger, member.userId, "acme");
    await eventually("the end of the membership", async () => (await list("ada")) === 403, 5_000);
    child.kill("SIGKILL");
    await once(child, "exit");
    await ledger.destroy();
    await issuer.stop();
  });

  it("is not ready before it has read every project", async () => {
    await apiserver.down();
    const child = spawn(process.execPath, [main], { env, stdio: "ignore" });
    await eventually("liveness", () => status(`${ops}/healthz`).then((code) => code === 200), 90_000);
    expect(await status(`${ops}/readyz`)).toBe(503);
    await apiserver.up();
    await eventually("readiness", () => status(`${ops}/readyz`).then((code) => code === 200), 90_000);
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  it.each([
    [{ SLIPWAY_LEDGER_URL: "" }, /SLIPWAY_LEDGER_URL: is not set/],
    [{ SLIPWAY_TOKEN_KEY_FILE: "/nowhere.pem" }, /\/nowhere\.pem is no PEM private key/],
    [{ SLIPWAY_CATALOG_FILE: "/nowhere.yaml" }, /\/nowhere\.yaml/],
  ])("does not start with %j, and says why", async (more, message) => {
    const child = spawn(process.execPath, [main], {
      env: { ...env, ...more },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    expect((await once(child, "close"))[0]).toBe(1);
    expect(stderr).toMatch(message);
  });
});
