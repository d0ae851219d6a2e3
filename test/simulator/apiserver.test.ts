import { isAlreadyExists, isConflict, isNotFound, resources } from "@slipway/controller-runtime";
import { beforeEach, expect, test } from "vitest";
import { jobRunResource } from "../../operator/src/resources.ts";
import { Apiserver, type Change } from "./apiserver.ts";
import type { Stored, StoredPod } from "./objects.ts";
import { Timeline } from "./timeline.ts";

const ref = { namespace: "n", name: "a" };
let api: Apiserver;
let changes: Change[];

beforeEach(() => {
  api = new Apiserver(new Timeline(Date.parse("2026-01-01T00:00:00.900Z")));
  changes = [];
  api.onChange((change) => changes.push(change));
});

const make = (metadata: object = {}, spec: object = { x: 1, list: [1] }) =>
  api.create(jobRunResource, { metadata: { ...ref, ...metadata }, spec });

test("an object has a uid, a generation and whole seconds, and a name only once", () => {
  const made = make();
  expect(made.metadata).toMatchObject({ generation: 1, creationTimestamp: "2026-01-01T00:00:00Z" });
  expect(made.metadata.uid).not.toBe("");
  expect(() => make()).toThrow(expect.toSatisfy(isAlreadyExists));
});

test("what is handed out cannot be changed, and what was sent is not kept", () => {
  const spec = { x: 1, list: [1] };
  const made = make({}, spec);
  spec.list.push(2);
  expect(made.spec).toEqual({ x: 1, list: [1] });
  expect(() => Object.assign(made.metadata, { name: "b" })).toThrow(TypeError);
});

test("a patch of the spec raises the generation, one of the status does not, one that changes nothing is not written", () => {
  const made = make();
  const patched = api.patch(jobRunResource, ref, { spec: { x: 2 }, status: { phase: "running" } });
  expect(patched.metadata.generation).toBe(2);
  expect(patched.status).toBeUndefined();
  const reported = api.patch(
    jobRunResource,
    ref,
    { spec: { x: 9 }, status: { phase: "running" } },
    { subresource: "status" },
  );
  expect(reported).toMatchObject({
    spec: { x: 2 },
    status: { phase: "running" },
    metadata: { generation: 2 },
  });
  const again = api.patch(jobRunResource, ref, { spec: { x: 2, list: [1], absent: null } });
  expect(again).toBe(reported);
  expect(changes).toHaveLength(3);
  expect(Number(reported.metadata.resourceVersion)).toBeGreaterThan(Number(made.metadata.resourceVersion));
});

test("a resourceVersion or uid that is another is a conflict", () => {
  const { resourceVersion, uid } = make().metadata;
  api.patch(jobRunResource, ref, { metadata: { resourceVersion, uid }, spec: { x: 2 } });
  const conflict = expect.toSatisfy(isConflict);
  expect(() => api.patch(jobRunResource, ref, { metadata: { resourceVersion }, spec: { x: 3 } })).toThrow(
    conflict,
  );
  expect(() => api.patch(jobRunResource, ref, { metadata: { uid: "b" }, spec: { x: 3 } })).toThrow(conflict);
  expect(() => api.delete(jobRunResource, ref, { uid: "b" })).toThrow(conflict);
  expect(() => api.delete(jobRunResource, ref, { resourceVersion })).toThrow(conflict);
  expect(() => api.patch(jobRunResource, { ...ref, name: "b" }, {})).toThrow(expect.toSatisfy(isNotFound));
});

test("a finalizer keeps a deleted object until it is removed", () => {
  make({ finalizers: ["f"] });
  api.delete(jobRunResource, ref);
  expect(api.get(jobRunResource, ref)?.metadata).toMatchObject({ deletionTimestamp: "2026-01-01T00:00:00Z" });
  api.patch(jobRunResource, ref, { metadata: { finalizers: [] } });
  expect(api.get(jobRunResource, ref)).toBeUndefined();
  expect(changes.map(({ type }) => type)).toEqual(["add", "update", "delete"]);
});

test("a running pod is deleted once its node has confirmed the end, and no finalizer is left", () => {
  const pod = () => api.get<StoredPod>(resources.pods, ref);
  const finalizers = ["f"];
  api.create<Stored>(resources.pods, {
    metadata: { ...ref, finalizers },
    spec: { terminationGracePeriodSeconds: 30 },
  });
  api.patch(resources.pods, ref, { spec: { nodeName: "node" } });
  api.delete(resources.pods, ref);
  expect(pod()?.metadata.deletionGracePeriodSeconds).toBe(30);
  api.patch(resources.pods, ref, { metadata: { finalizers: null } });
  expect(pod()).toBeDefined();
  api.delete(resources.pods, ref, { gracePeriodSeconds: 60 });
  expect(pod()?.metadata.deletionGracePeriodSeconds).toBe(30);
  api.delete(resources.pods, ref, { gracePeriodSeconds: 0 });
  expect(pod()).toBeUndefined();
});

test("a pod without a node is deleted immediately", () => {
  api.create(resources.pods, { metadata: ref, spec: { terminationGracePeriodSeconds: 30 } });
  api.delete(resources.pods, ref);
  expect(api.get(resources.pods, ref)).toBeUndefined();
});
