import { describe, expect, it } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import type { KubernetesObject, ObjectMeta } from "../client/types.ts";
import { byControllerUid, byLabel } from "./index-table.ts";
import { Store } from "./store.ts";
import type { StoreEvent } from "./store-event.ts";

function object(name: string, version: number, meta: ObjectMeta = {}): KubernetesObject {
  return {
    metadata: { namespace: "a", name, uid: `uid-${name}`, resourceVersion: String(version), ...meta },
  };
}

function recorded(store: Store): string[] {
  const seen: string[] = [];
  store.subscribe((event) =>
    seen.push(`${event.type} ${event.key}@${event.object.metadata?.resourceVersion}`),
  );
  return seen;
}

describe("Store", () => {
  it("reports additions, updates and deletions of a relist", () => {
    const store = new Store();
    store.replace([object("x", 1), object("y", 2)], "2");
    const seen = recorded(store);
    store.replace([object("y", 5), object("z", 4)], "6");
    expect(seen).toEqual(["add a/x@1", "add a/y@2", "delete a/x@1", "update a/y@5", "add a/z@4"]);
    expect(store.resourceVersion).toBe("6");
  });

  it("reports a recreated object as a deletion and an addition", () => {
    const store = new Store();
    store.replace([object("x", 1)], "2");
    const seen = recorded(store);
    store.upsert(object("x", 9, { uid: "another" }));
    expect(seen.slice(1)).toEqual(["delete a/x@1", "add a/x@9"]);
  });

  it("ignores an event that is older than what it has", () => {
    const store = new Store();
    store.replace([object("x", 99)], "100");
    const seen = recorded(store);
    store.upsert(object("x", 98));
    store.upsert(object("x", 99));
    expect(seen).toEqual(["add a/x@99"]);
    expect(store.get("a", "x")?.metadata?.resourceVersion).toBe("99");
  });

  it("keeps an object when its predecessor of the same name was deleted", () => {
    const store = new Store();
    store.replace([object("x", 10)], "10");
    store.observe(object("x", 15, { uid: "second" }));
    store.remove(object("x", 12));
    expect(store.get("a", "x")?.metadata?.uid).toBe("second");
  });

  it("compares resourceVersions as numbers of any length", () => {
    const store = new Store();
    store.replace([object("x", 9)], "9");
    store.upsert(object("x", 10));
    expect(store.get("a", "x")?.metadata?.resourceVersion).toBe("10");
  });

  it("finds by index, through every change", () => {
    const store = new Store({ indexers: { project: byLabel("project"), owner: byControllerUid } });
    const labels = (project: string) => ({ labels: { project } });
    const owned = {
      ownerReferences: [{ apiVersion: "v1", kind: "K", name: "o", uid: "u1", controller: true }],
    };
    store.replace([object("x", 1, labels("p")), object("y", 2, { ...labels("p"), ...owned })], "2");
    expect(store.byIndex("project", "p").map((item) => item.metadata?.name)).toEqual(["x", "y"]);
    expect(store.byIndex("owner", "u1")).toHaveLength(1);
    store.upsert(object("x", 3, labels("q")));
    store.remove(object("y", 4));
    expect(store.byIndex("project", "p")).toEqual([]);
    expect(store.byIndex("project", "q")).toHaveLength(1);
    expect(store.indexValues("project")).toEqual(["q"]);
    expect(() => store.byIndex("nothing", "p")).toThrow(RangeError);
  });

  it("keeps delivering when a subscriber throws", () => {
    const errors: unknown[] = [];
    const store = new Store({ onHandlerError: (error) => errors.push(error) });
    store.subscribe(() => {
      throw new Error("handler");
    });
    const seen = recorded(store);
    store.replace([object("x", 1)], "1");
    store.upsert(object("x", 2));
    expect(seen).toEqual(["add a/x@1", "update a/x@2"]);
    expect(errors).toHaveLength(2);
  });

  it("drops managedFields", () => {
    const store = new Store();
    store.replace([object("x", 1, { managedFields: [{}] })], "1");
    expect(store.get("a", "x")?.metadata).not.toHaveProperty("managedFields");
  });

  it("gives old and new state of an update", () => {
    const store = new Store();
    store.replace([object("x", 1)], "1");
    const events: StoreEvent<KubernetesObject>[] = [];
    store.subscribe((event) => events.push(event));
    store.upsert(object("x", 2));
    const update = events[1];
    expect(update?.old?.metadata?.resourceVersion).toBe("1");
  });

  it("reports every object again when history went backwards: another one may have its version", () => {
    const store = new Store();
    store.replace([object("x", 50)], "100");
    const seen = recorded(store);
    const restored = object("x", 50, { labels: { restored: "true" } });
    store.replace([restored], "60");
    expect(seen).toEqual(["add a/x@50", "update a/x@50"]);
    expect(store.get("a", "x")).toBe(restored);
  });
});

describe("Store.observe", () => {
  it("shows a write before the watch reports it, and once", () => {
    const store = new Store();
    store.replace([], "10");
    const seen = recorded(store);
    store.observe(object("x", 15));
    store.upsert(object("x", 15));
    expect(seen).toEqual(["add a/x@15"]);
    expect(store.resourceVersion).toBe("15");
  });

  it("does not restore what the watch already knows to be deleted", () => {
    const store = new Store();
    store.replace([], "10");
    store.upsert(object("x", 11));
    store.remove(object("x", 13));
    store.observe(object("x", 12));
    expect(store.get("a", "x")).toBeUndefined();
  });

  it("survives a relist that is older than the write", () => {
    const store = new Store();
    store.replace([], "10");
    store.observe(object("x", 15));
    store.replace([], "12");
    expect(store.get("a", "x")).toBeDefined();
    store.replace([], "16");
    expect(store.get("a", "x")).toBeUndefined();
  });

  it("is forgotten when history went backwards", () => {
    const store = new Store();
    store.replace([object("x", 90)], "100");
    store.observe(object("y", 110));
    store.replace([object("x", 50)], "60");
    expect(store.get("a", "y")).toBeUndefined();
    expect(store.get("a", "x")?.metadata?.resourceVersion).toBe("50");
    expect(store.resourceVersion).toBe("60");
  });
});

describe("Store.waitForResourceVersion", () => {
  it("resolves immediately for what was seen", async () => {
    const store = new Store();
    store.replace([], "10");
    expect(await store.waitForResourceVersion("9", { timeoutMs: 1 })).toBe(true);
  });

  it("resolves when an event or a bookmark passes it", async () => {
    const store = new Store({ clock: new FakeClock() });
    store.replace([], "10");
    const byEvent = store.waitForResourceVersion("11", { timeoutMs: 1_000 });
    const byBookmark = store.waitForResourceVersion("20", { timeoutMs: 1_000 });
    store.upsert(object("x", 11));
    expect(await byEvent).toBe(true);
    store.progress("21");
    expect(await byBookmark).toBe(true);
  });

  it("rejects after the timeout and on abort", async () => {
    const clock = new FakeClock();
    const store = new Store({ clock });
    const abort = new AbortController();
    const late = store.waitForResourceVersion("11", { timeoutMs: 1_000 });
    const aborted = store.waitForResourceVersion("11", { timeoutMs: 1_000, signal: abort.signal });
    abort.abort();
    expect(await aborted).toBe(false);
    await clock.advance(1_000);
    expect(await late).toBe(false);
    expect(clock.pending).toBe(0);
  });

  it("is not satisfied by a local write alone", async () => {
    const clock = new FakeClock();
    const store = new Store({ clock });
    store.replace([], "10");
    const waiting = store.waitForResourceVersion("15", { timeoutMs: 1_000 });
    store.observe(object("x", 15));
    await clock.advance(1_000);
    expect(await waiting).toBe(false);
  });
});
