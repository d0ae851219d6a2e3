import { describe, expect, it } from "vitest";
import { envShards } from "./env-secrets.ts";
import { pullSecret, registryOf } from "./registry-secrets.ts";

const bytesOf = (data: Record<string, string>) =>
  Object.entries(data).reduce((sum, [name, value]) => sum + Buffer.byteLength(name + value), 0);

describe("envShards", () => {
  it("makes no Secret of no variables", () => {
    expect(envShards("p1", [])).toEqual([]);
  });

  it("names the same set the same, in any order, and another value differently", () => {
    const a = { name: "A", value: "1" };
    const b = { name: "B", value: "2" };
    const names = (...variables: (typeof a)[]) => envShards("p1", variables).map((shard) => shard.name);
    expect(names(a, b)).toEqual(names(b, a));
    expect(names(a, b)).not.toEqual(names(a, { ...b, value: "3" }));
    expect(names(a, b)[0]).toMatch(/^p1-env-[0-9a-f]{12}$/);
    expect(envShards("p2", [a])[0]?.name.slice(3)).not.toBe(envShards("p1", [a])[0]?.name.slice(3));
  });

  it("holds the most that the specification allows below a Secret's size, losing nothing", () => {
    const variables = Array.from({ length: 50 }, (_, index) => ({
      name: `N${index}`,
      value: "ü".repeat(32_760),
    }));
    const shards = envShards("p1", variables);
    for (const shard of shards) {
      expect(bytesOf(shard.stringData)).toBeLessThan(1_000_000);
    }
    const all = Object.assign({}, ...shards.map((shard) => shard.stringData));
    expect(all).toEqual(Object.fromEntries(variables.map(({ name, value }) => [name, value])));
    expect(new Set(shards.map((shard) => shard.name)).size).toBe(shards.length);
  });
});

describe("pullSecret", () => {
  it.each([
    ["nginx", "https://index.docker.io/v1/"],
    ["team/app:1", "https://index.docker.io/v1/"],
    ["docker.io/library/nginx", "https://index.docker.io/v1/"],
    ["registry.example.com/team/app@sha256:abc", "registry.example.com"],
    ["10.0.0.1:5000/app", "10.0.0.1:5000"],
    ["localhost/app", "localhost"],
  ])("of %s logs in to %s", (image, registry) => {
    expect(registryOf(image)).toBe(registry);
    const login = { username: "u", token: "t" };
    const { auths } = JSON.parse(pullSecret("p1", image, login).dockerConfigJson);
    expect(auths[registry]).toEqual({ username: "u", password: "t", auth: "dTp0" });
  });
});
