import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { KubeClient } from "./client.ts";
import { loadKubeConfig } from "./kube-config.ts";
import { resources } from "./resources.ts";

let dir: string;
let url: string;
let close: () => Promise<void>;
let requestPaths: string[];
let seen: IncomingMessage["headers"][];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "kube-credentials-"));
  seen = [];
  requestPaths = [];
  const server = createServer((request, response) => {
    seen.push(request.headers);
    requestPaths.push(request.url ?? "");
    response.end(JSON.stringify({ metadata: { resourceVersion: "1" }, items: [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
});

afterEach(async () => {
  vi.useRealTimers();
  await close();
  await rm(dir, { recursive: true });
});

async function kubeconfig(user: object, name = "config"): Promise<string> {
  const file = join(dir, name);
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "one",
    contexts: ["one", "two"].map((context) => ({ name: context, context: { cluster: "c", user: "u" } })),
    clusters: [{ name: "c", cluster: { server: `${url}/prefix/`, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user }],
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

async function authorizationOf(client: KubeClient): Promise<string | undefined> {
  await client.list(resources.pods);
  return seen.at(-1)?.authorization;
}

describe("credentials", () => {
  it("sends a token", async () => {
    const client = KubeClient.fromConfig(loadKubeConfig({ file: await kubeconfig({ token: "t0k3n" }) }));
    expect(await authorizationOf(client)).toBe("Bearer t0k3n");
    await client.close();
  });

  it("runs an exec plugin", async () => {
    const credential = { kind: "ExecCredential", status: { token: "from-exec" } };
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: process.execPath,
      args: ["-e", `console.log(${JSON.stringify(JSON.stringify(credential))})`],
    };
    const client = KubeClient.fromConfig(loadKubeConfig({ file: await kubeconfig({ exec }) }));
    expect(await authorizationOf(client)).toBe("Bearer from-exec");
    await client.close();
  });

  it("reads a rotated token file again", async () => {
    const tokenFile = join(dir, "token");
    await writeFile(tokenFile, "first\n");
    const file = await kubeconfig({ "auth-provider": { name: "tokenFile", config: { tokenFile } } });
    const clock = new FakeClock();
    vi.useFakeTimers({ toFake: ["Date"] });
    const client = KubeClient.fromConfig(loadKubeConfig({ file }), { clock });
    expect(await authorizationOf(client)).toBe("Bearer first");
    await writeFile(tokenFile, "second\n");
    expect(await authorizationOf(client)).toBe("Bearer first");
    vi.setSystemTime(Date.now() + 61_000);
    await clock.advance(61_000);
    expect(await authorizationOf(client)).toBe("Bearer second");
    await client.close();
  });

  it("keeps the path of the server's address", async () => {
    const client = KubeClient.fromConfig(loadKubeConfig({ file: await kubeconfig({ token: "t" }) }));
    await client.list(resources.pods);
    expect(requestPaths).toEqual(["/prefix/api/v1/pods"]);
    await client.close();
  });
});

describe("loadKubeConfig", () => {
  it("takes the first file of KUBECONFIG that exists, and a context of it", async () => {
    const file = await kubeconfig({ token: "t" });
    const env = { KUBECONFIG: `${join(dir, "none")}:${file}`, KUBERNETES_SERVICE_HOST: "10.96.0.1" };
    expect(loadKubeConfig({ env }).getCurrentContext()).toBe("one");
    expect(loadKubeConfig({ env, context: "two" }).getCurrentContext()).toBe("two");
    expect(() => loadKubeConfig({ env, context: "three" })).toThrow("no context three");
  });

  it("refuses a KUBECONFIG that names nothing", () => {
    expect(() => loadKubeConfig({ env: { KUBECONFIG: join(dir, "none") } })).toThrow(
      "names no existing file",
    );
  });
});
