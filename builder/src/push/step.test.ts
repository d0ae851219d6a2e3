import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Redactor } from "../log/redact.ts";
import { Log } from "../log/writer.ts";
import { exitCodes } from "../result.ts";
import { runStep } from "../runner.ts";
import type { PushTask } from "../task.ts";
import { pushStep } from "./step.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const TOKEN = "t0ken-of-push";
const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

let folder: string;
let lines: string[];
let server: Server;
let host: string;
/** What the registry has, by path. */
let stored: Map<string, Buffer>;
let asked: string[];
/** Answers in the place of the registry's own; undefined leaves it to that. */
let instead: (request: IncomingMessage) => number | undefined | Promise<number | undefined>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-push-"));
  lines = [];
  stored = new Map();
  asked = [];
  instead = () => undefined;
  await mkdir(join(folder, "secrets/registry"), { recursive: true });
  const answerTo = async (request: IncomingMessage, answer: ServerResponse) => {
    const { method, url = "" } = request;
    asked.push(`${method} ${url.replace(/[a-f0-9]{64}/, "…")}`);
    const other = await instead(request);
    if (other !== undefined) {
      return answer.writeHead(other).end("because");
    }
    if (request.headers.authorization !== `Bearer ${TOKEN}`) {
      return answer.writeHead(401).end("UNAUTHORIZED");
    }
    if (method === "HEAD") {
      return answer.writeHead(stored.has(url) ? 200 : 404).end();
    }
    if (method === "POST") {
      return answer.writeHead(202, { location: "http://elsewhere.example/v2/up/1?state=a" }).end();
    }
    const body = await buffer(request);
    const named = new URL(url, "http://registry").searchParams.get("digest");
    if (named !== null && named !== digestOf(body)) {
      return answer.writeHead(400).end("DIGEST_INVALID");
    }
    stored.set(named === null ? url : `/v2/alpha/pshop/blobs/${named}`, body);
    return answer.writeHead(201).end();
  };
  // Some hang up in the middle.
  server = createServer((request, answer) => void answerTo(request, answer).catch(() => undefined));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = { auths: { [host]: { registrytoken: TOKEN } } };
  await writeFile(join(folder, "secrets/registry/config.json"), JSON.stringify(config));
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

/** Lays out an image of these layers. @returns its digest */
async function layOut(layers: Buffer[], name = "image"): Promise<string> {
  const blobs = join(folder, name, "blobs/sha256");
  await mkdir(blobs, { recursive: true });
  const put = async (bytes: Buffer) => {
    const digest = digestOf(bytes);
    await writeFile(join(blobs, digest.slice(7)), bytes);
    return { digest, size: bytes.length };
  };
  const config = await put(Buffer.from("{}"));
  const manifest = Buffer.from(JSON.stringify({ config, layers: await Promise.all(layers.map(put)) }));
  const named = { mediaType: MANIFEST, ...(await put(manifest)) };
  await writeFile(join(folder, name, "index.json"), JSON.stringify({ manifests: [named] }));
  return named.digest;
}

const task = (more: Partial<PushTask> = {}): PushTask => ({
  step: "push",
  repository: `${host}/alpha/pshop`,
  tag: "b1",
  maxImageBytes: 10_000_000,
  timeoutSeconds: 5,
  ...more,
});
const paths = () => ({ work: folder, secrets: join(folder, "secrets"), cache: folder });

function push(more: Partial<PushTask> = {}, pauses: number[] = [1]): Promise<{ digest: string }> {
  const write = (line: string): void => void lines.push(line);
  const log = new Log({ step: "push", redactor: new Redactor({ values: [] }), write, now: () => new Date() });
  return pushStep({ task: task(more), log, paths: paths(), pauses });
}

test("an image is published under its tag, and reported by its digest", async () => {
  const layer = randomBytes(3_000_000);
  const digest = await layOut([layer, Buffer.alloc(0), layer]);
  expect(await push()).toEqual({ digest });
  expect(digestOf(stored.get("/v2/alpha/pshop/manifests/b1") ?? Buffer.of())).toBe(digest);
  expect(stored.get(`/v2/alpha/pshop/blobs/${digestOf(layer)}`)).toEqual(layer);
  expect(asked.filter((each) => each.startsWith("POST"))).toHaveLength(3);
  asked = [];
  expect(await push({ tag: undefined })).toEqual({ digest });
  expect(asked.filter((each) => !each.startsWith("HEAD"))).toEqual([
    "PUT /v2/alpha/pshop/manifests/sha256:…",
  ]);
  expect(lines.join("")).not.toContain(TOKEN);
});

describe("a registry that refuses", () => {
  test("is tried again after a transient failure, and not after a permanent one", async () => {
    const digest = await layOut([randomBytes(100)]);
    let refusals = 1;
    instead = ({ method }) => (method === "PUT" && refusals-- > 0 ? 507 : undefined);
    expect(await push()).toEqual({ digest });
    instead = () => 403;
    asked = [];
    await expect(push()).rejects.toMatchObject({ failure: { code: "PROJECT_PUBLISH_FAILED" } });
    expect(asked.filter((each) => each.startsWith("HEAD")).length).toBeLessThanOrEqual(2);
    expect(lines.join("")).toContain("status code 403");
  });

  test("says so before it has read a large layer, and is understood", async () => {
    await layOut([randomBytes(9_000_000)]);
    instead = ({ method, url }) => (method === "PUT" && url?.includes("digest=") ? 413 : undefined);
    await expect(push()).rejects.toMatchObject({ failure: { code: "PROJECT_PUBLISH_FAILED" } });
    expect(lines.join("")).toMatch(/status code 413|EPIPE|ECONNRESET/);
  });

  test("or that does not answer is abandoned in time", async () => {
    await layOut([randomBytes(100)]);
    instead = () => new Promise(() => undefined);
    const timeout = { failure: { code: "PROJECT_PUBLISH_TIMEOUT" } };
    await expect(push({ timeoutSeconds: 1 })).rejects.toMatchObject(timeout);
  });

  test("ends the build: the step has tried as often as there is sense in it", async () => {
    await layOut([randomBytes(100)]);
    instead = () => 507;
    const { result, exitCode } = await runStep({
      step: "push",
      tasks: JSON.stringify([task({ timeoutSeconds: 1 })]),
      paths: paths(),
      write: (line) => void lines.push(line),
    });
    expect(result.code).toMatch(/^PROJECT_PUBLISH_/);
    expect(exitCode).toBe(exitCodes.failed);
  });
});

describe("an image that a step of the build has laid hands on", () => {
  const notPublished = { failure: { code: "BUILD_FAILED_UNCLASSIFIED" } };
  const secret = () => join(folder, "secrets/registry/config.json");

  // Shows: docs/builds.md#what-hostile-repositories-come-to: links from its image's folder to what
  test("links that a step of the build has left in the image are not followed", async () => {
    const layer = randomBytes(100);
    await layOut([layer]);
    const blob = join(folder, "image/blobs/sha256", digestOf(layer).slice(7));
    await rm(blob);
    await symlink(secret(), blob);
    await expect(push()).rejects.toMatchObject(notPublished);
    await rm(blob);
    await mkdir(blob);
    await expect(push()).rejects.toMatchObject(notPublished);
    expect(asked).toEqual([]);
  });

  test.each(["image", "image/blobs", "image/blobs/sha256", "image/index.json"])(
    "a link in the place of %s is not followed, though it leads to an image",
    async (path) => {
      await layOut([randomBytes(100)]);
      await rename(join(folder, path), join(folder, "moved"));
      await symlink(join(folder, "moved"), join(folder, path));
      await expect(push()).rejects.toMatchObject(notPublished);
    },
  );

  test("a pipe in the place of a file is not waited for", async () => {
    await layOut([randomBytes(100)]);
    await rm(join(folder, "image/index.json"));
    execFileSync("mkfifo", [join(folder, "image/index.json")]);
    await expect(push()).rejects.toMatchObject(notPublished);
  });

  test("another manifest than its name says is not published", async () => {
    const digest = await layOut([randomBytes(100)]);
    await writeFile(join(folder, "image/blobs/sha256", digest.slice(7)), '{"config":{},"layers":[]}');
    await expect(push()).rejects.toMatchObject(notPublished);
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: releases `push` before its build has ended
  test("no more is read of a file than the size of an image allows, and no more than it had at first", async () => {
    const layer = randomBytes(1_000);
    await layOut([layer]);
    const blob = join(folder, "image/blobs/sha256", digestOf(layer).slice(7));
    await truncate(blob, 20_000_000_000);
    await expect(push()).rejects.toMatchObject({ failure: { code: "BUILD_IMAGE_TOO_LARGE" } });
    expect(asked).toEqual([]);
    await truncate(blob, 1_000);
    let sent = 0;
    instead = async (request) => {
      if (request.method === "POST") {
        await truncate(blob, 20_000_000_000);
      }
      if (request.method !== "PUT") {
        return undefined;
      }
      sent = Math.max(sent, (await buffer(request)).length);
      return 400;
    };
    await expect(push({}, [])).rejects.toMatchObject({ failure: { code: "PROJECT_PUBLISH_FAILED" } });
    expect(sent).toBe(1_000);
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: releases `push` before its build has ended
  test("a file that became shorter is not waited for", async () => {
    const layer = randomBytes(1_000_000);
    await layOut([layer]);
    const blob = join(folder, "image/blobs/sha256", digestOf(layer).slice(7));
    instead = async ({ method }) => {
      if (method === "POST") {
        await truncate(blob, 10);
      }
      return undefined;
    };
    const began = Date.now();
    await expect(push({ timeoutSeconds: 60 }, [])).rejects.toMatchObject({
      failure: { code: "PROJECT_PUBLISH_FAILED" },
    });
    expect(Date.now() - began).toBeLessThan(10_000);
  });
});
