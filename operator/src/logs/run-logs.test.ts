import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeClient, type KubeError } from "@slipway/controller-runtime";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { createRunLogs } from "./run-logs.ts";

const namespace = "slipway-org-alpha";
const run = {
  organizationId: "alpha",
  namespace,
  projectId: "p1",
  runId: "p1-29000000",
  scheduledAt: new Date("2026-01-01T00:00:00Z"),
  podName: "p1-29000000-x2x2x",
};
const isLog = ({ path }: { path: string }) =>
  path === `/api/v1/namespaces/${namespace}/pods/${run.podName}/log`;

let api: FakeApiserver;
let client: KubeClient;
let stored: string[];
/** The whole log; what is asked of it is served as a kubelet does. */
let log: string;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  stored = [];
  api.etcd.create("v1/nodes", "n1", { metadata: { name: "n1" } });
  api.etcd.create("v1/pods", `${namespace}/${run.podName}`, {
    metadata: { name: run.podName, namespace },
    spec: { nodeName: "n1" },
  });
  api.raw = (request) => {
    if (!isLog(request)) {
      return undefined;
    }
    const lines = log.split(/(?<=\n)/);
    return Buffer.from(lines.slice(-Number(request.query.tailLines)).join(""));
  };
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

const archive = (store = async (_: unknown, text: string) => void stored.push(text)) =>
  createRunLogs({ client, store }).archive(run, AbortSignal.timeout(10_000));
const logReads = () => api.requests.filter(isLog).map(({ query }) => query);

test("a short log is stored whole, in one request for the container", async () => {
  log = "one\ntwö\nthree without an end";
  expect(await archive()).toBe("stored");
  expect(stored).toEqual([log]);
  expect(logReads()).toEqual([{ container: "app", tailLines: "512" }]);
});

test("a log without a line is stored, too", async () => {
  log = "";
  expect(await archive()).toBe("stored");
  expect(stored).toEqual([""]);
});

test("of many short lines the last 51,200 bytes are stored, in a second request", async () => {
  log = "é\n".repeat(40_000);
  expect(await archive()).toBe("stored");
  expect(Buffer.byteLength(stored[0] ?? "")).toBeLessThanOrEqual(MAX_LOG_BYTES);
  expect(Buffer.byteLength(stored[0] ?? "")).toBeGreaterThan(MAX_LOG_BYTES - 4);
  expect(log.endsWith(stored[0] ?? "?")).toBe(true);
  expect(logReads()).toHaveLength(2);
});

test("of 10 MiB on one line the last 51,200 bytes are stored, in one request", async () => {
  log = `${"€".repeat(3_500_000)}\n`;
  expect(await archive()).toBe("stored");
  expect(log.endsWith(stored[0] ?? "?")).toBe(true);
  const bytes = Buffer.byteLength(stored[0] ?? "");
  expect(bytes).toBeGreaterThan(MAX_LOG_BYTES - 4);
  expect(bytes).toBeLessThanOrEqual(MAX_LOG_BYTES);
  expect(logReads()).toHaveLength(1);
});

test.each([
  ["a container that never began", 400],
  ["a pod that is gone", 404],
])("%s has no log for good", async (_, status) => {
  if (status === 404) {
    api.etcd.delete("v1/pods", `${namespace}/${run.podName}`);
  }
  api.failNext(isLog, { status, times: 9 });
  expect(await archive()).toBe("unavailable");
  expect(stored).toEqual([]);
});

test("a pod whose node was deleted has lost its log", async () => {
  api.etcd.delete("v1/nodes", "n1");
  api.failNext(isLog, { status: 404, times: 9 });
  expect(await archive()).toBe("unavailable");
});

test.each([
  ["a kubelet that does not know its pods yet", 404],
  ["a node that is silent", 500],
  ["a missing permission", 403],
  ["an apiserver that is busy", 503],
])("%s is tried again", async (_, status) => {
  log = "end\n";
  api.failNext(isLog, { status });
  await expect(archive()).rejects.toMatchObject({ status } satisfies Partial<KubeError>);
  expect(await archive()).toBe("stored");
});

test("a ledger that is unavailable is an error, and the log is read again", async () => {
  log = "end\n";
  await expect(archive(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await archive()).toBe("stored");
  expect(stored).toEqual(["end\n"]);
});

const ID = "d689083f5f1c1c2f5d2f1e0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c";

describe("a kubelet's own message in place of a log", () => {
  const put = (patch: object, subresource?: string) =>
    api.etcd.patch("v1/pods", `${namespace}/${run.podName}`, patch as never, subresource);

  beforeEach(() => {
    log = `unable to retrieve container logs for containerd://${ID}`;
  });

  test.each([
    ["deleted", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }, undefined],
    ["evicted", { status: { reason: "Evicted" } }, "status"],
  ])("is no log: that of a pod that was %s is gone for good", async (_, patch, subresource) => {
    put(patch, subresource);
    expect(await archive()).toBe("unavailable");
    expect(stored).toEqual([]);
  });

  test("is no log: while a runtime is restarted it is requested again", async () => {
    await expect(archive()).rejects.toMatchObject({ reason: "NoLog" });
    log = "end\n";
    expect(await archive()).toBe("stored");
    expect(stored).toEqual(["end\n"]);
  });
});

describe("a log that is followed", () => {
  /** Answers of followed logs, in the order in which they were asked for. */
  let streams: ServerResponse[];
  let queries: Record<string, string>[];

  beforeEach(() => {
    log = "";
    streams = [];
    queries = [];
    api.stream = (request, response) => {
      if (!isLog(request) || request.query.follow !== "true") {
        return false;
      }
      queries.push(request.query);
      streams.push(response);
      response.writeHead(200, { "content-type": "text/plain" });
      response.flushHeaders();
      return true;
    };
  });
  afterEach(() => {
    for (const stream of streams) {
      stream.destroy();
    }
  });

  const follow = (signal = AbortSignal.timeout(10_000)) =>
    createRunLogs({ client, store: async (_, text) => void stored.push(text) }).follow(run, signal);

  test("is stored once its container has ended, however long that was silent", async () => {
    log = "up\n";
    const followed = await follow();
    expect(queries).toEqual([{ container: "app", tailLines: "512", follow: "true" }]);
    streams[0]?.write("up\n");
    await sleep(300);
    streams[0]?.end("bye\n");
    await followed.ended;
    expect(await followed.store()).toBe("stored");
    expect(stored).toEqual(["up\nbye\n"]);
  });

  describe("of short lines", () => {
    const line = (number: number) => `line ${number}\n`;
    const lines = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => line(from + index)).join("");

    /** Whether a second one that reaches further back was asked for. */
    const further = async () => {
      await expect.poll(() => streams.length).toBe(2);
      expect(queries[1]).toEqual({ container: "app", tailLines: "51200", follow: "true" });
    };

    test("reaches as far back as it must", async () => {
      const followed = await follow();
      streams[0]?.write(lines(9_488, 10_000));
      await further();
      streams[1]?.write(lines(0, 10_000));
      for (const stream of streams) {
        stream.end("bye\n");
      }
      await followed.ended;
      expect(await followed.store()).toBe("stored");
      expect(Buffer.byteLength(stored[0] ?? "")).toBe(MAX_LOG_BYTES);
      expect(`${lines(0, 10_000)}bye\n`.endsWith(stored[0] ?? "?")).toBe(true);
    });

    test.each([
      ["was too late", (stream?: ServerResponse) => stream?.end(`container status is nil`)],
      ["broke off", (stream?: ServerResponse) => stream?.write("line 0\n", () => stream.destroy())],
    ])("is stored as far as the first lines reach when the others %s", async (_, fail) => {
      const followed = await follow();
      streams[0]?.write(lines(9_488, 10_000));
      await further();
      fail(streams[1]);
      await sleep(100);
      streams[0]?.end("bye\n");
      await followed.ended;
      expect(await followed.store()).toBe("stored");
      expect(stored).toEqual([`${lines(9_488, 10_000)}bye\n`]);
    });

    test("is read once when the first lines reach far enough", async () => {
      const followed = await follow();
      streams[0]?.end("x".repeat(200).concat("\n").repeat(512));
      await followed.ended;
      expect(await followed.store()).toBe("stored");
      expect(streams).toHaveLength(1);
    });
  });

  test("is stored without the kubelet's message that its container was deleted", async () => {
    const followed = await follow();
    streams[0]?.write("up\nbye\n");
    streams[0]?.end(
      `rpc error: code = NotFound desc = an error occurred when try to find container "${ID}": not found`,
    );
    await followed.ended;
    expect(await followed.store()).toBe("stored");
    expect(stored).toEqual(["up\nbye\n"]);
  });

  test("is stored when its container wrote nothing", async () => {
    const followed = await follow();
    streams[0]?.end();
    await followed.ended;
    expect(await followed.store()).toBe("stored");
    expect(stored).toEqual([""]);
  });

  test("that is nothing but the kubelet's message is none", async () => {
    const followed = await follow();
    streams[0]?.end(`unable to retrieve container logs for containerd://${ID}`);
    await followed.ended;
    expect(await followed.store()).toBe("unavailable");
    expect(stored).toEqual([]);
  });

  test("that fails is stored as far as it was read, if anything was", async () => {
    const [some, none] = [await follow(), await follow()];
    streams[0]?.write("up\n");
    await sleep(100);
    for (const stream of streams) {
      stream.destroy();
    }
    await Promise.all([some.ended, none.ended]);
    expect(await some.store()).toBe("stored");
    expect(await none.store()).toBe("unavailable");
    expect(stored).toEqual(["up\n"]);
  });

  test("is aborted by its signal", async () => {
    const abort = new AbortController();
    const followed = await follow(abort.signal);
    const closed = once(streams[0] as ServerResponse, "close");
    abort.abort();
    await Promise.all([followed.ended, closed]);
  });

  test("that never ends is aborted after 16 MiB", async () => {
    const followed = await follow();
    const stream = streams[0] as ServerResponse;
    const closed = once(stream, "close");
    const line = `${"x".repeat(65_535)}\n`;
    const writing = setInterval(() => {
      for (let some = 0; some < 40; some += 1) {
        stream.write(line);
      }
    }, 5);
    await Promise.all([followed.ended, closed]);
    clearInterval(writing);
    expect(await followed.store()).toBe("stored");
    expect(Buffer.byteLength(stored[0] ?? "")).toBeLessThanOrEqual(MAX_LOG_BYTES);
  });

  test("uses no connection of other requests, however many are followed", async () => {
    const logs = await Promise.all(Array.from({ length: 40 }, () => follow()));
    expect(streams).toHaveLength(40);
    log = "end\n";
    expect(await archive()).toBe("stored");
    for (const stream of streams) {
      stream.end();
    }
    await Promise.all(logs.map(({ ended }) => ended));
  });

  test("cannot be followed when its node does not answer", async () => {
    api.failNext(isLog, { status: 500 });
    await expect(follow()).rejects.toMatchObject({ status: 500 });
  });
});
