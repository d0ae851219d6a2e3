import type { ServerResponse } from "node:http";
import { labels, organizationNamespace } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import type { SeenRequest } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { projectResource } from "../../resources.ts";

const ORGANIZATION = "acme";
const NAMESPACE = organizationNamespace(ORGANIZATION);

let harness: FakeHarness;
let headers: Record<string, string>;
let base: string;
/** What each pod has written. */
let written: Map<string, string>;
/** Streams of nodes that are open, by the pod's name. */
let open: Map<string, ServerResponse>;
const client = () => new AbortController();

beforeEach(async () => {
  harness = await startFakeHarness();
  headers = harness.key(ORGANIZATION, "project.logs.read on project:*");
  [written, open] = [new Map(), new Map()];
  harness.apiserver.raw = ({ path, query }) => {
    const name = podOf(path);
    if (name === undefined || query.follow === "true") {
      return undefined;
    }
    return Buffer.from(query.previous === "true" ? "" : (written.get(name) ?? ""));
  };
  harness.apiserver.stream = ({ path, query }, response) => {
    const name = podOf(path);
    if (name === undefined || query.follow !== "true") {
      return false;
    }
    response.writeHead(200, { "content-type": "text/plain" });
    response.flushHeaders();
    response.write(written.get(name) ?? "");
    open.set(name, response);
    response.once("close", () => open.get(name) === response && open.delete(name));
    return true;
  };
  base = await harness.app.listen({ port: 0, host: "127.0.0.1" });
  await harness.project(ORGANIZATION, "shop");
});
afterEach(async () => {
  // After an aborted request, the client keeps a connection that it has sent nothing on yet.
  harness.app.server.closeAllConnections();
  await harness.close();
});

const podOf = (path: string) => /\/pods\/([^/]+)\/log$/.exec(path)?.[1];
const follows = ({ path, query }: SeenRequest) => podOf(path) !== undefined && query.follow === "true";

function pod(name: string, status: object = { state: { running: {} } }) {
  const object = {
    metadata: { name, namespace: NAMESPACE, labels: { [labels.project]: "shop" } },
    spec: { containers: [{ name: "app" }] },
    status: { containerStatuses: [{ name: "app", ...status }] },
  };
  harness.apiserver.etcd.create("v1/pods", `${NAMESPACE}/${name}`, object);
}

const line = (second: number, text: string) =>
  `2026-03-01T10:00:${String(second).padStart(2, "0")}.000000000Z ${text}\n`;

/** The pod writes, and its node sends it to followers. */
function write(name: string, ...lines: string[]) {
  written.set(name, (written.get(name) ?? "") + lines.join(""));
  open.get(name)?.write(lines.join(""));
}

interface Seen {
  status: number;
  type: string | null;
  /** Texts of the lines so far, and of all. */
  messages: () => string[];
  text: () => string;
  ended: Promise<void>;
}

async function follow(signal: AbortSignal, query = "", more: Record<string, string> = {}): Promise<Seen> {
  const url = `${base}/v1/project/shop/logs?follow=true${query}`;
  const response = await fetch(url, { headers: { ...headers, ...more }, signal });
  let text = "";
  const read = async () => {
    for await (const part of response.body ?? []) {
      text += Buffer.from(part).toString();
    }
  };
  const data = () =>
    [...text.matchAll(/^event: log\ndata: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    messages: () => data().map(({ instance, message }) => `${instance} ${message}`),
    text: () => text,
    ended: read().catch(() => undefined),
  };
}

describe("GET /v1/project/:id/logs?follow=true", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  it("sends the newest lines by time, then new ones of all instances", async () => {
    pod("shop-a");
    pod("shop-b");
    write("shop-a", line(1, "a1"), line(3, "a3"));
    write("shop-b", line(2, "b2"));
    const reader = client();
    const seen = await follow(reader.signal);
    expect([seen.status, seen.type]).toEqual([200, "text/event-stream; charset=utf-8"]);
    await eventually("both to be followed", () => open.size === 2);
    write("shop-b", line(4, "b4"));
    await eventually("b4", () => seen.messages().includes("shop-b b4"));
    write("shop-a", line(5, "a5"), line(5, "a5 again"));
    await eventually("a5", () => seen.messages().includes("shop-a a5 again"));
    const [a, b] = ["shop-a", "shop-b"];
    expect(seen.messages()).toEqual([`${a} a1`, `${b} b2`, `${a} a3`, `${b} b4`, `${a} a5`, `${a} a5 again`]);
    expect(seen.text()).toContain(
      'event: instances\ndata: {"instances":["shop-a","shop-b"],"unavailable_instances":[]}\n\n',
    );
    expect(seen.text()).toContain('"timestamp":"2026-03-01T10:00:05.000000000Z"');
    reader.abort();
    await seen.ended;
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  it("ends the nodes' streams, and no longer counts, when the client has disconnected", async () => {
    pod("shop-a");
    const reader = client();
    const seen = await follow(reader.signal);
    await eventually("the node's stream", () => open.size === 1);
    expect(harness.services.logs.instances).toBe(1);
    reader.abort();
    await seen.ended;
    await eventually("the node's stream to end", () => open.size === 0);
    await eventually("the places", () => {
      const { builds, logs } = harness.services;
      return builds.streams.size === 0 && logs.instances === 0;
    });
    // No stream lists instances any more.
    const requests = harness.apiserver.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(harness.apiserver.requests).toHaveLength(requests);
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  it("follows instances that are created, and drops those that are deleted", async () => {
    pod("shop-a");
    write("shop-a", line(1, "a1"));
    const reader = client();
    const seen = await follow(reader.signal);
    await eventually("a", () => open.has("shop-a"));
    write("shop-b", line(2, "b2"));
    pod("shop-b");
    await eventually("b2", () => seen.messages().includes("shop-b b2"));
    write("shop-a", line(3, "last words"));
    open.get("shop-a")?.end();
    harness.apiserver.etcd.delete("v1/pods", `${NAMESPACE}/shop-a`);
    await eventually("b alone", () => seen.text().includes('{"instances":["shop-b"]'));
    expect(seen.messages()).toEqual(["shop-a a1", "shop-b b2", "shop-a last words"]);
    reader.abort();
    await seen.ended;
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  it("continues where a node disconnected, without a line twice or lost", async () => {
    pod("shop-a");
    write("shop-a", line(1, "one"), line(1, "two"));
    const reader = client();
    const seen = await follow(reader.signal);
    for (const text of ["three", "four", "five"]) {
      await eventually("the node's stream", () => open.has("shop-a"));
      const before = open.get("shop-a");
      before?.destroy();
      // Written while no client follows.
      written.set("shop-a", `${written.get("shop-a")}${line(1, text)}`);
      await eventually(text, () => seen.messages().includes(`shop-a ${text}`));
    }
    expect(seen.messages()).toEqual(["one", "two", "three", "four", "five"].map((text) => `shop-a ${text}`));
    const sinceTimes = harness.apiserver.requests.filter(follows).map(({ query }) => query.sinceTime);
    expect(new Set(sinceTimes)).toEqual(new Set(["2026-03-01T10:00:01Z"]));
    reader.abort();
    await seen.ended;
  });

  it("reads to its end a run that crashed between two polls, before the one that runs", async () => {
    pod("shop-a", { state: { waiting: {} } });
    const reader = client();
    const seen = await follow(reader.signal);
    harness.apiserver.raw = ({ path, query }) =>
      podOf(path) && query.follow !== "true"
        ? Buffer.from(query.previous === "true" ? line(1, "panic") : "")
        : undefined;
    written.set("shop-a", line(2, "again"));
    const again = { state: { running: {} }, lastState: { terminated: {} }, restartCount: 1 };
    harness.apiserver.etcd.delete("v1/pods", `${NAMESPACE}/shop-a`);
    pod("shop-a", again);
    await eventually("both runs", () => seen.messages().length === 2);
    expect(seen.messages()).toEqual(["shop-a panic", "shop-a again"]);
    reader.abort();
    await seen.ended;
  });

  it("of one instance has its lines alone, and none of another project", async () => {
    pod("shop-a");
    pod("shop-b");
    write("shop-a", line(1, "a1"));
    write("shop-b", line(2, "b2"));
    const reader = client();
    const seen = await follow(reader.signal, "&instance=shop-b");
    await eventually("b2", () => open.has("shop-b"));
    write("shop-b", line(3, "b3"));
    await eventually("b3", () => seen.messages().includes("shop-b b3"));
    expect(seen.messages()).toEqual(["shop-b b2", "shop-b b3"]);
    expect([...open.keys()]).toEqual(["shop-b"]);
    reader.abort();
    await seen.ended;
    expect((await follow(client().signal, "&instance=other-a")).status).toBe(404);
  });

  it("continues after the last event that the client has", async () => {
    pod("shop-a");
    write("shop-a", line(1, "a1"), line(2, "a2"));
    const first = client();
    const before = await follow(first.signal);
    await eventually("a2", () => before.messages().length === 2);
    const id = [...before.text().matchAll(/^id: (\d+)$/gm)].at(-1)?.[1] ?? "";
    first.abort();
    await before.ended;
    await eventually("the node's stream to end", () => open.size === 0);
    write("shop-a", line(3, "a3"));
    const second = client();
    const after = await follow(second.signal, "", { "last-event-id": id });
    await eventually("the node's stream", () => open.has("shop-a"));
    write("shop-a", line(4, "a4"));
    await eventually("a4", () => after.messages().includes("shop-a a4"));
    expect(after.messages()).toEqual(["shop-a a3", "shop-a a4"]);
    second.abort();
    await after.ended;
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  it("ends, and says so, once the project is deleted", async () => {
    pod("shop-a");
    const seen = await follow(client().signal);
    await eventually("the node's stream", () => open.has("shop-a"));
    await harness.kube.delete(projectResource, { namespace: NAMESPACE, name: "shop" });
    await seen.ended;
    expect(seen.text()).toMatch(/event: end\ndata: {"reason":"deleted"}\n\n$/);
    await eventually("the node's stream to end", () => open.size === 0);
  });

  it("ends with the process, without saying that it is the end", async () => {
    pod("shop-a");
    const seen = await follow(client().signal);
    await eventually("the node's stream", () => open.has("shop-a"));
    await harness.services.builds.streams.endAll();
    await seen.ended;
    expect(seen.text()).not.toContain("event: end");
    await eventually("the node's stream to end", () => open.size === 0);
    expect((await follow(client().signal)).status).toBe(503);
  });

  it("names instances whose node is silent, and follows them when it answers again", async () => {
    pod("shop-a");
    pod("shop-b");
    const reader = client();
    harness.apiserver.failNext((request) => follows(request) && podOf(request.path) === "shop-a", {
      status: 500,
      times: 2,
    });
    const seen = await follow(reader.signal);
    await eventually("the silent one", () => seen.text().includes('"unavailable_instances":["shop-a"]'));
    await eventually("both", () => open.size === 2);
    await eventually("both to be sent", () => seen.text().trimEnd().endsWith('"unavailable_instances":[]}'));
    reader.abort();
    await seen.ended;
  });

  it("needs project.logs.read", async () => {
    headers = harness.key(ORGANIZATION, "project.read on project:*");
    expect((await follow(client().signal)).status).toBe(403);
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  it("ends within five seconds of the revocation of a key, a grant or a membership, and others continue", async () => {
    pod("shop-a");
    const user = await harness.user(ORGANIZATION, "member", "project.logs.read on project:*");
    const [revoked, narrowed] = [0, 1].map(() => harness.key(ORGANIZATION, "project.logs.read on project:*"));
    const reader = client();
    const staying = await follow(reader.signal);
    const ending = await Promise.all(
      [revoked, narrowed, user].map((caller) => follow(reader.signal, "", { "x-api-key": "", ...caller })),
    );
    await eventually("all to be open", () => harness.services.builds.streams.size === 4);
    harness.revoke(revoked ?? {});
    harness.revoke(narrowed ?? {}, "project.read on project:*");
    harness.revoke(user);
    const since = performance.now();
    await Promise.all(ending.map(({ ended }) => ended));
    expect(performance.now() - since).toBeLessThan(5_000);
    expect(ending.map(({ text }) => text().includes("event: end"))).toEqual([false, false, false]);
    expect(harness.services.builds.streams.size).toBe(1);
    reader.abort();
    await staying.ended;
  });
});
