import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintRegistryToken } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ensureBinary } from "../../../hack/cluster/binaries.ts";
import { ensureRegistryKey, prepareRegistry } from "../../../hack/cluster/builds/registry.ts";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";
import { run } from "../../../hack/lib/exec.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import { removeStorage } from "../../../test/kit/builder/storage.ts";
import { Redactor } from "../log/redact.ts";
import { OutputLines } from "../log/writer.ts";
import { Buildah } from "./buildah.ts";
import { emptyProgram } from "./probe.ts";
import { type RegistryMirror, startMirror } from "./registry-mirror.ts";

/** The mirror before the stack's own kind of registry: TLS by an authority of its own, and tokens. */

const MANIFEST = "application/vnd.docker.distribution.manifest.v2+json";
let folder: string;
let host: string;
let registry: ChildProcess;
let caFile: string;
/** Pulls `base/one`, and nothing else. */
let token: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-mirror-"));
  const [port = 0] = await freePorts(1);
  // Loopback by another address: that one speaks TLS to everybody.
  host = `127.0.0.2:${port}`;
  const authority = await ensureAuthority(folder, "ca");
  caFile = authority.cert;
  const daemon = await prepareRegistry(
    {
      data: join(folder, "data"),
      config: join(folder, "registry.yaml"),
      keys: folder,
      host,
      tls: await ensureCertificate(folder, "registry", authority, {
        commonName: "registry",
        altNames: ["IP:127.0.0.2"],
      }),
      realm: "http://127.0.0.1:1/registry/token",
    },
    await ensureBinary("registry"),
  );
  const [program = "", ...args] = daemon.argv;
  registry = spawn(program, args, { stdio: "ignore" });
  await waitFor("the registry", 30_000, async () => daemon.healthy());
  const key = await readFile(await ensureRegistryKey(folder), "utf8");
  const access = (repository: string, actions: ("pull" | "push")[]) =>
    mintRegistryToken(key, "test", [{ repository, actions }], 600, new Date());
  token = access("base/one", ["pull"]);
  for (const repository of ["base/one", "oother/pshop"]) {
    await pushImage(repository, access(repository, ["pull", "push"]));
  }
});

afterAll(async () => {
  if (registry?.exitCode === null) {
    registry.kill("SIGKILL");
    await once(registry, "exit");
  }
  await removeStorage(folder);
});

async function pushImage(repository: string, registrytoken: string): Promise<void> {
  const config = join(folder, "config");
  await mkdir(config, { recursive: true });
  await writeFile(join(config, "config.json"), JSON.stringify({ auths: { [host]: { registrytoken } } }));
  const layer = join(folder, "layer");
  await mkdir(layer, { recursive: true });
  await writeFile(join(layer, "true"), emptyProgram(process.arch), { mode: 0o755 });
  await run("tar", ["-C", layer, "-cf", join(folder, "layer.tar"), "true"]);
  await run(
    await ensureBinary("crane"),
    ["append", "-f", join(folder, "layer.tar"), "-t", `${host}/${repository}:1`],
    {
      env: { DOCKER_CONFIG: config, SSL_CERT_FILE: caFile },
    },
  );
}

describe("a mirror", () => {
  let mirror: RegistryMirror;
  beforeAll(async () => {
    mirror = await startMirror({ host, ca: await readFile(caFile, "utf8"), token });
  });
  afterAll(() => mirror?.close());

  const ask = (path: string, method = "GET") =>
    fetch(`http://${mirror.address}${path}`, { method, headers: { accept: MANIFEST } });

  test("gives manifests and blobs of what the token reads", async () => {
    const manifest = await ask("/v2/base/one/manifests/1");
    expect([manifest.status, manifest.headers.get("content-type")]).toEqual([200, MANIFEST]);
    const { layers } = (await manifest.json()) as { layers: { digest: string; size: number }[] };
    const blob = await ask(`/v2/base/one/blobs/${layers[0]?.digest}`);
    expect((await blob.arrayBuffer()).byteLength).toBe(layers[0]?.size);
    expect((await ask("/v2/base/one/manifests/1", "HEAD")).headers.get("docker-content-digest")).toMatch(
      /^sha256:/,
    );
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: begins with another tenant's image, or with
  test("gives nothing of another tenant's", async () => {
    expect((await ask("/v2/oother/pshop/manifests/1")).status).toBe(401);
  });

  test("answers 502 where the registry's certificate is not by its authority", async () => {
    const other = await startMirror({
      host,
      ca: await readFile((await ensureAuthority(folder, "other")).cert, "utf8"),
      token,
    });
    expect((await fetch(`http://${other.address}/v2/base/one/manifests/1`)).status).toBe(502);
    await other.close();
  });

  test("serves such an image as buildah's base", async () => {
    const files = join(folder, "files");
    await mkdir(files);
    await writeFile(join(files, "Dockerfile"), `FROM ${host}/base/one:1\nRUN ["/true"]\n`);
    const backend = await Buildah.start({
      root: join(folder, "cache"),
      scratch: join(folder, "scratch"),
      cacheBytes: 1e9,
      registries: { [host]: { caFile, token } },
    });
    const lines: string[] = [];
    const outcome = await backend.build(
      {
        context: files,
        dockerfile: files,
        secrets: {},
        args: {},
        commands: {},
        output: join(folder, "image"),
        timeoutMs: 60_000,
      },
      { step: () => undefined, output: () => new OutputLines(new Redactor({}), (line) => lines.push(line)) },
    );
    await backend.close();
    expect([outcome, lines]).toEqual([{ ok: true }, []]);
    const written = await run("grep", ["-rlF", token, join(folder, "cache"), join(folder, "scratch")]).catch(
      () => "",
    );
    expect(written).toBe("");
  });
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: asks buildah's registry on loopback for
test.each([
  ["POST", "/v2/base/one/blobs/uploads/"],
  ["PUT", "/v2/base/one/manifests/1"],
  ["DELETE", "/v2/base/one/manifests/1"],
  ["GET", "/v2/_catalog"],
  ["GET", "/v2/base/one/tags/list"],
  ["GET", "/v2/base/one/blobs/../../../other/manifests/1"],
  ["GET", "/v2/base/%2e%2e/manifests/1"],
  ["GET", "/v2/base//one/manifests/1"],
  ["GET", "/v2/base/one/manifests/1?next=/v2/_catalog"],
  ["GET", "http://127.0.0.1:1/v2/base/one/manifests/1"],
  ["GET", "/registry/token"],
])("%s %s is not handed on", async (method, path) => {
  let asked = 0;
  const server = createServer((_request, answer) => {
    asked += 1;
    answer.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const mirror = await startMirror({
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: "secret",
  });
  const [hostname, port] = mirror.address.split(":");
  // As it stands: `fetch` would put the path right.
  const sent = request({ hostname, port, method, path }).end();
  const [answer] = (await once(sent, "response")) as [{ statusCode?: number; resume(): void }];
  answer.resume();
  await mirror.close();
  server.close();
  expect([[404, 405].includes(answer.statusCode ?? 0), asked]).toEqual([true, 0]);
});
