import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type KubeClient, Kubelets, type KubeletTrust, type TokenSource } from "@slipway/controller-runtime";
import { systemClock } from "@slipway/process";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ensureAuthority, ensureCertificate, type KeyPair } from "../../../hack/cluster/certificates.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { requestedTokens } from "./kubelet-token.ts";

/** A kubelet on loopback that shows a certificate of its authority. */
let dir: string;
let authority: KeyPair;
let stranger: KeyPair;
let kubelet: Server;
let asked: { url: string; token: string | undefined }[];
let respond: (request: IncomingMessage) => { status?: number; body?: string } | undefined;
let connections: number;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "slipway-kubelet-"));
  authority = await ensureAuthority(dir, "ca");
  stranger = await ensureAuthority(dir, "other-ca");
  const serving = await ensureCertificate(dir, "kubelet", authority, {
    commonName: "system:node:n1",
    altNames: ["IP:127.0.0.1"],
  });
  const [cert, key] = await Promise.all([readFile(serving.cert), readFile(serving.key)]);
  kubelet = createServer({ cert, key }, (request, response) => {
    asked.push({ url: request.url ?? "", token: request.headers.authorization });
    const answer = respond(request);
    if (!answer) {
      return;
    }
    response.writeHead(answer.status ?? 200).end(answer.body ?? "");
  });
  kubelet.on("secureConnection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => kubelet.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  kubelet?.closeAllConnections();
  kubelet?.close();
  await rm(dir, { recursive: true, force: true });
});
beforeEach(() => {
  [asked, connections] = [[], 0];
  respond = () => ({ body: summary() });
});

const address = () => ({ host: "127.0.0.1", port: (kubelet.address() as AddressInfo).port });
let opened: Kubelets | undefined;
afterEach(() => opened?.close(address()));

const trusting = (file: string, verify = true): KubeletTrust => ({
  ca: () => readFile(file, "utf8"),
  verify,
});
function kubelets(options: { trust?: KubeletTrust; token?: TokenSource } = {}): Kubelets {
  const token = options.token ?? { get: async () => "t0", invalidate: () => {} };
  const trust = options.trust ?? trusting(authority.cert);
  opened = new Kubelets({ trust, token, clock: systemClock, userAgent: "test", container: "app" });
  return opened;
}
const read = (of: Kubelets) => of.read(address(), AbortSignal.timeout(15_000));

/** An answer with one pod, in the kubelet's own words. */
function summary(container: object | undefined = {}): string {
  const app = {
    name: "app",
    startTime: "2026-01-01T00:00:00Z",
    cpu: { time: "2026-01-01T00:00:10Z", usageNanoCores: 250_000_000, usageCoreNanoSeconds: 2_500_000_000 },
    memory: { time: "2026-01-01T00:00:11Z", usageBytes: 9, workingSetBytes: 4096, rssBytes: 1 },
    ...container,
  };
  const pod = { podRef: { name: "p", namespace: "a", uid: "u1" }, cpu: {}, memory: {} };
  return JSON.stringify({
    node: {},
    pods: [
      container ? { ...pod, containers: [{ name: "sidecar" }, app] } : pod,
      { podRef: { uid: "u2" }, containers: [] },
    ],
  });
}

test("readings come by pod uid, in one short request with the reader's token", async () => {
  const readings = await read(kubelets());
  expect([...readings]).toEqual([
    [
      "u1",
      {
        createdAt: Date.parse("2026-01-01T00:00:00Z"),
        cpu: {
          at: Date.parse("2026-01-01T00:00:10Z"),
          nanoCores: 250_000_000,
          coreNanoSeconds: 2_500_000_000,
        },
        memory: { at: Date.parse("2026-01-01T00:00:11Z"), workingSetBytes: 4096 },
      },
    ],
  ]);
  expect(asked).toEqual([{ url: "/stats/summary?only_cpu_and_memory=true", token: "Bearer t0" }]);
});

test("zeros, which the kubelet writes for what it does not know, are unknown", async () => {
  const time = "2026-01-01T00:00:10Z";
  respond = () => ({
    body: summary({
      cpu: { time, usageNanoCores: 0, usageCoreNanoSeconds: 0 },
      memory: { time, workingSetBytes: 0 },
    }),
  });
  expect((await read(kubelets())).get("u1")).toEqual({ createdAt: Date.parse("2026-01-01T00:00:00Z") });
});

test("a kubelet that leaves containers out of the short answer gets requests for the long one from then on", async () => {
  respond = ({ url }) => {
    const long = summary();
    const { pods } = JSON.parse(long) as { pods: { podRef: object }[] };
    return {
      body: url?.includes("only") ? JSON.stringify({ pods: pods.map(({ podRef }) => ({ podRef })) }) : long,
    };
  };
  const one = kubelets();
  expect((await read(one)).size).toBe(1);
  expect((await read(one)).size).toBe(1);
  expect(asked.map(({ url }) => url)).toEqual([
    "/stats/summary?only_cpu_and_memory=true",
    "/stats/summary",
    "/stats/summary",
  ]);
});

test("a kubelet with a certificate of another authority is shown no token, unless verification is off", async () => {
  await expect(read(kubelets({ trust: trusting(stranger.cert) }))).rejects.toThrow(/certificate/);
  expect(asked).toEqual([]);
  expect((await read(kubelets({ trust: trusting(stranger.cert, false) }))).size).toBe(1);
});

test("one connection serves one request after the other", async () => {
  const one = kubelets();
  for (let index = 0; index < 5; index += 1) {
    await read(one);
  }
  expect(connections).toBe(1);
});

test("a token that is refused is requested again once", async () => {
  let token = 0;
  const source = {
    get: async () => `t${token}`,
    invalidate: () => {
      token += 1;
    },
  };
  respond = ({ headers }) => (headers.authorization === "Bearer t1" ? { body: summary() } : { status: 401 });
  expect((await read(kubelets({ token: source }))).size).toBe(1);
  respond = () => ({ status: 401 });
  await expect(read(kubelets({ token: source }))).rejects.toMatchObject({ status: 401 });
});

test.each([
  ["no JSON", "<html>"],
  ["null", "null"],
])("%s is an error, not an answer", async (_, body) => {
  respond = () => ({ body });
  await expect(read(kubelets())).rejects.toMatchObject({ reason: "InvalidResponse" });
});

test("a summary without pods has no readings", async () => {
  respond = () => ({ body: "{}" });
  expect((await read(kubelets())).size).toBe(0);
});

test("a request to a silent kubelet times out after 5 s", async () => {
  respond = () => undefined;
  const began = performance.now();
  await expect(read(kubelets())).rejects.toMatchObject({ status: 0, reason: "Timeout" });
  expect(performance.now() - began).toBeLessThan(8_000);
}, 240_000);

test("tokens of the reader are kept until ten minutes before they end, and requested again after a refusal", async () => {
  const clock = new FakeClock();
  const requests: unknown[] = [];
  const create: KubeClient["create"] = async (resource, object, options) => {
    requests.push([resource.plural, object.metadata, options?.subresource]);
    const expirationTimestamp = new Date(clock.now().getTime() + 3_600_000).toISOString();
    return { ...object, status: { token: `t${requests.length}`, expirationTimestamp } };
  };
  const tokens = requestedTokens({ create }, "slipway-system", clock);
  expect(await Promise.all([tokens.get(), tokens.get()])).toEqual(["t1", "t1"]);
  expect(requests).toEqual([
    ["serviceaccounts", { name: "slipway-kubelet-reader", namespace: "slipway-system" }, "token"],
  ]);
  await clock.advance(49 * 60_000);
  expect(await tokens.get()).toBe("t1");
  await clock.advance(2 * 60_000);
  expect(await tokens.get()).toBe("t2");
  tokens.invalidate();
  // It is young: a kubelet that refuses all of them does not make a new one each time.
  expect(await tokens.get()).toBe("t2");
  await clock.advance(61_000);
  tokens.invalidate();
  expect(await tokens.get()).toBe("t3");
});

test("without a token there is an error, and the next request tries again", async () => {
  let calls = 0;
  const create: KubeClient["create"] = async (_, object) => {
    calls += 1;
    if (calls === 1) {
      throw new Error("forbidden");
    }
    return { ...object, status: { token: "t", expirationTimestamp: new Date().toISOString() } };
  };
  const tokens = requestedTokens({ create }, "slipway-system", new FakeClock());
  await expect(tokens.get()).rejects.toThrow("forbidden");
  expect(await tokens.get()).toBe("t");
});
