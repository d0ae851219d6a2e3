import { labels, organizationNamespace } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import type { SeenRequest } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { readLog } from "../read.ts";

const ORGANIZATION = "acme";
const NAMESPACE = organizationNamespace(ORGANIZATION);

let harness: FakeHarness;
let headers: Record<string, string>;
/** What each pod's node answers, by `name` or `name previous`. */
let logs: Map<string, Buffer | Promise<Buffer>>;

beforeEach(async () => {
  harness = await startFakeHarness();
  headers = harness.key(ORGANIZATION, "project.logs.read on project:*");
  logs = new Map();
  harness.apiserver.raw = (request) => {
    const name = logOf(request);
    if (name === undefined) {
      return undefined;
    }
    return logs.get(request.query.previous === "true" ? `${name} previous` : name) ?? Buffer.alloc(0);
  };
  await harness.project(ORGANIZATION, "shop");
});
afterEach(() => harness.close());

const logOf = ({ path }: SeenRequest) => /\/pods\/([^/]+)\/log$/.exec(path)?.[1];
const logRequests = () => harness.apiserver.requests.filter((request) => logOf(request) !== undefined);

type State = "running" | "starting" | "crashed" | "restarted";
const running = { running: {} };
const terminated = { terminated: { exitCode: 1 } };
const states: Record<State, object> = {
  running: { state: running, lastState: {} },
  starting: { state: { waiting: {} }, lastState: {} },
  crashed: { state: { waiting: {} }, lastState: terminated },
  restarted: { state: running, lastState: terminated },
};

function pod(name: string, state: State, project = "shop") {
  const object = {
    metadata: { name, namespace: NAMESPACE, labels: { [labels.project]: project } },
    spec: { containers: [{ name: "sidecar" }, { name: "app" }] },
    status: { containerStatuses: [{ name: "app", ...states[state] }] },
  };
  harness.apiserver.etcd.create("v1/pods", `${NAMESPACE}/${name}`, object);
}
const lines = (...entries: [second: number, text: string][]) =>
  Buffer.from(
    entries
      .map(([second, text]) => `2026-03-01T10:00:${String(second).padStart(2, "0")}.000000000Z ${text}\n`)
      .join(""),
  );

const read = (query = "", with_ = headers) =>
  harness.app.inject({ url: `/v1/project/shop/logs${query}`, headers: with_ });

describe("GET /v1/project/:id/logs", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` | the application's lines, of all
  it("merges the lines of all instances, without the node's times", async () => {
    pod("shop-a", "running");
    pod("shop-b", "running");
    pod("shop-c", "starting");
    pod("other-a", "running", "other");
    logs.set("shop-a", lines([1, "a1"], [3, "a3"]));
    logs.set("shop-b", lines([2, "b2"]));
    logs.set("other-a", lines([2, "another project's"]));
    const response = await read();
    expect(response.json()).toEqual({
      status: "success",
      data: ["a1", "b2", "a3"],
      instances: expect.arrayContaining(["shop-a", "shop-b", "shop-c"]),
    });
    expect(response.headers["cache-control"]).toBe("no-store");
    expect(logRequests().map(logOf).sort()).toEqual(["shop-a", "shop-b"]);
    for (const { query } of logRequests()) {
      expect(query).toMatchObject({ container: "app", tailLines: "1000", limitBytes: expect.any(String) });
    }
  });

  // Shows: docs/applications.md#errors-other-operations: GET logs | 404 `INSTANCE_NOT_FOUND`, 503
  it("reads one instance, and none that is not the project's", async () => {
    pod("shop-a", "running");
    pod("shop-b", "running");
    pod("other-a", "running", "other");
    logs.set("shop-a", lines([1, "a1"]));
    logs.set("shop-b", lines([1, "b1"]));
    expect((await read("?instance=shop-b")).json()).toMatchObject({ data: ["b1"], instances: ["shop-b"] });
    const before = logRequests().length;
    for (const name of ["other-a", "nothing", "../shop-a", "shop-a/log", "%2e%2e"]) {
      const refused = await read(`?instance=${encodeURIComponent(name)}`);
      expect([name, refused.statusCode, refused.json().code]).toEqual([name, 404, "INSTANCE_NOT_FOUND"]);
    }
    expect(logRequests()).toHaveLength(before);
  });

  // Shows: docs/applications.md#project-settings: logs: newest 1,000 lines in at most 256 KiB; of a
  it("shows the run that crashed before the one that runs", async () => {
    pod("shop-a", "restarted");
    logs.set("shop-a previous", lines([1, "panic"]));
    logs.set("shop-a", lines([5, "again"]));
    expect((await read()).json().data).toEqual(["panic", "again"]);
  });

  it("shows what ran last while the container waits to be started again", async () => {
    pod("shop-a", "crashed");
    logs.set("shop-a", lines([1, "panic"]));
    expect((await read()).json().data).toEqual(["panic"]);
    expect(logRequests().map(({ query }) => query.previous)).toEqual([undefined]);
  });

  it("requests fewer lines until the newest of them fit", async () => {
    pod("shop-a", "running");
    const all = Array.from({ length: 1_000 }, (_, index): [number, string] => [
      1,
      `${index} ${"x".repeat(8_000)}`,
    ]);
    harness.apiserver.raw = (request) => {
      if (logOf(request) === undefined) {
        return undefined;
      }
      const tail = lines(...all.slice(-Number(request.query.tailLines)));
      return tail.subarray(0, Number(request.query.limitBytes));
    };
    const { data } = (await read()).json();
    expect(data.at(-1)).toMatch(/^999 x{8000}$/);
    expect(data.length).toBeGreaterThan(25);
    expect(Buffer.byteLength(data.join("\n"))).toBeLessThanOrEqual(256 * 1024);
  });

  // Shows: docs/applications.md#project-settings: logs: newest 1,000 lines in at most 256 KiB; of a
  it("answers at most 1,000 lines, the newest", async () => {
    pod("shop-a", "running");
    pod("shop-b", "running");
    logs.set(
      "shop-a",
      lines(...Array.from({ length: 900 }, (_, index): [number, string] => [1, `a${index}`])),
    );
    logs.set(
      "shop-b",
      lines(...Array.from({ length: 900 }, (_, index): [number, string] => [2, `b${index}`])),
    );
    const { data } = (await read()).json();
    expect(data).toHaveLength(1_000);
    expect(data[0]).toBe("a800");
    expect(data.at(-1)).toBe("b899");
  });

  it.each([
    ["that is paused", { paused: true }],
    ["without instances", {}],
  ])("of a project %s is empty", async (_name, change) => {
    await harness.project(ORGANIZATION, "idle", change);
    const response = await harness.app.inject({ url: "/v1/project/idle/logs", headers });
    expect(response.json()).toEqual({ status: "success", data: [], instances: [] });
  });

  it("leaves out instances that the node reports as deleted or not started", async () => {
    for (const [name, status] of Object.entries({ "shop-a": 400, "shop-b": 404 })) {
      pod(name, "running");
      harness.apiserver.failNext((request) => logOf(request) === name, { status });
    }
    pod("shop-c", "running");
    logs.set("shop-c", lines([1, "here"]));
    expect((await read()).json().data).toEqual(["here"]);
  });

  // Shows: docs/applications.md#errors-other-operations: GET logs | 404 `INSTANCE_NOT_FOUND`, 503
  it("is 503 when no node answers, and names the silent ones when some do", async () => {
    pod("shop-a", "running");
    harness.apiserver.failNext((request) => logOf(request) === "shop-a", { status: 500, times: 2 });
    const refused = await read();
    expect(refused.statusCode).toBe(503);
    expect(refused.json().code).toBe("LOGS_UNAVAILABLE");
    pod("shop-b", "running");
    logs.set("shop-b", lines([1, "here"]));
    expect((await read()).json()).toMatchObject({
      data: ["here"],
      unavailable_instances: ["shop-a"],
    });
  });

  it("waits for a silent node neither longer than for one node, nor than for all", async () => {
    pod("shop-a", "running");
    logs.set("shop-a", new Promise(() => {}));
    const project = await harness.projects.find(ORGANIZATION, "shop");
    if (!project) {
      throw new Error("no project");
    }
    const started = Date.now();
    const { kube, services } = harness;
    await expect(
      readLog(kube, services.logger, project, undefined, { nodeTimeoutMs: 200, totalTimeoutMs: 10_000 }),
    ).rejects.toMatchObject({ status: 503, code: "LOGS_UNAVAILABLE" });
    await expect(
      readLog(kube, services.logger, project, undefined, { nodeTimeoutMs: 10_000, totalTimeoutMs: 200 }),
    ).rejects.toMatchObject({ status: 503, code: "LOGS_UNAVAILABLE" });
    expect(Date.now() - started).toBeLessThan(3_000);
  });

  // Shows: docs/applications.md#errors-every-operation: 503 | `SERVER_BUSY`, with `Retry-After`: an
  it("is read for six calls of an organization concurrently; others wait, other organizations do not", async () => {
    pod("shop-a", "running");
    let release = (_log: Buffer): void => {};
    const silent = new Promise<Buffer>((resolve) => {
      release = resolve;
    });
    logs.set("shop-a", silent);
    const sent = Array.from({ length: 8 }, () => read());
    await eventually("six reads", () => logRequests().length === 6);
    await harness.project("umbrella", "theirs");
    const theirs = harness.key("umbrella", "project.logs.read on project:*");
    const others = harness.app.inject({ url: "/v1/project/theirs/logs", headers: theirs });
    expect((await others).statusCode).toBe(200);
    expect(logRequests()).toHaveLength(6);
    release(lines([1, "here"]));
    for (const response of await Promise.all(sent)) {
      expect(response.json().data).toEqual(["here"]);
    }
  });

  it("is 503 when the cluster does not answer", async () => {
    harness.apiserver.failNext(({ path }) => path.endsWith("/pods"), { status: 500, times: 9 });
    expect((await read()).json()).toMatchObject({ code: "CLUSTER_UNAVAILABLE" });
  });

  it.each(["?instance=", "?lines=5", `?instance=${"x".repeat(254)}`])("refuses %s", async (query) => {
    const response = await read(query);
    expect([response.statusCode, response.json().code]).toEqual([400, "VALIDATION_FAILED"]);
  });

  it("needs project.logs.read, and shows no foreign project", async () => {
    const reader = harness.key(ORGANIZATION, "project.read on project:*");
    expect((await read("", reader)).json().required).toEqual(["project.logs.read on project:shop"]);
    expect((await read("", harness.key("umbrella", "* on project:*"))).statusCode).toBe(404);
  });
});
