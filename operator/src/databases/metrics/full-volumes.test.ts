import { labels } from "@slipway/crds";
import { expect, test } from "vitest";
import { FullVolumes, readVolumes } from "./full-volumes.ts";
import { UNKNOWN } from "./resources.ts";
import type { DatabasePod } from "./targets.ts";

test("a volume is full from 97 % on, and until less than 95 % is used", () => {
  const full = new FullVolumes();
  const at = (percent: number | undefined) => {
    full.observe(new Map([["a", percent]]));
    return full.has("a");
  };
  expect([96.9, 97, 95, undefined, 94.9, 96, undefined].map(at)).toEqual([
    false,
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("deleted pods are forgotten", () => {
  const full = new FullVolumes();
  expect(full.observe(new Map([["a", 99]]))).toEqual(["a"]);
  expect(full.observe(new Map())).toEqual([]);
  expect(full.has("a")).toBe(false);
});

test("a round notifies the projects whose volumes have become full, or are no longer full, and those alone", async () => {
  const pod = (name: string, node = "n"): DatabasePod => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `${name}-0`, namespace: "org", uid: name, labels: { [labels.project]: name } },
    node,
  });
  const percents: Record<string, number | undefined> = { a: 98, b: 10, c: undefined };
  const notified: string[] = [];
  const options = {
    pods: { list: () => [pod("a"), pod("b"), pod("c")] },
    resources: {
      of: async ({ podUid }: { podUid: string }) => {
        const percent = percents[podUid];
        return percent === undefined
          ? UNKNOWN
          : { ...UNKNOWN, storage_used_bytes: percent, storage_capacity_bytes: 100 };
      },
    },
    full: new FullVolumes(),
    onChange: ({ namespace, name }: { namespace: string; name: string }) =>
      notified.push(`${namespace}/${name}`),
    clock: undefined as never,
  };
  await readVolumes(options);
  await readVolumes(options);
  expect(notified).toEqual(["org/a"]);
  percents.a = 50;
  await readVolumes(options);
  expect(notified).toEqual(["org/a", "org/a"]);
});
