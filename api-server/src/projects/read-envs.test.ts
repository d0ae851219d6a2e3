import { annotations } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { envSecret } from "./creation/objects.ts";
import { envShards } from "./creation/secrets.ts";
import { type StoredSecret, variablesOf } from "./read-envs.ts";

const base64 = (data: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, Buffer.from(value).toString("base64")]),
  );
const secret = (data: Record<string, string>, order?: string): StoredSecret => ({
  metadata: order === undefined ? {} : { annotations: { [annotations.envOrder]: order } },
  data: base64(data),
});
const names = (...secrets: StoredSecret[]) => variablesOf(secrets).map(({ name }) => name);

describe("variablesOf", () => {
  it("returns what was sent, in its order, over any number of Secrets", () => {
    const variables = Array.from({ length: 50 }, (_, index) => ({
      name: `N${(index * 37) % 50}`,
      value: `${index} ${"ü".repeat(30_000)}`,
    }));
    const shards = envShards("p1", variables);
    expect(shards.length).toBeGreaterThan(2);
    const stored = shards.map((shard) => {
      const { metadata, stringData } = envSecret(shard, { organizationId: "acme", projectId: "p1" });
      return { metadata, data: base64(stringData) };
    });
    expect(variablesOf(stored)).toEqual(variables);
  });

  it("lets the later Secret win, as Kubernetes does", () => {
    expect(variablesOf([secret({ A: "1", B: "1" }), secret({ A: "2" })])).toEqual([
      { name: "A", value: "2" },
      { name: "B", value: "1" },
    ]);
  });

  it("puts users' own by name behind those with an order", () => {
    expect(names(secret({ Y: "", B: "" }), secret({ C: "", A: "" }, "1,0"))).toEqual(["C", "A", "B", "Y"]);
  });

  it.each(["", "1", "0,1,2", "x,y"])("ignores the order '%s' of two variables", (order) => {
    expect(names(secret({ B: "", A: "" }, order))).toEqual(["A", "B"]);
  });

  it("reads a Secret without data as empty", () => {
    expect(variablesOf([{ metadata: {} }])).toEqual([]);
  });

  it("shows bytes that are no UTF-8 with the replacement character", () => {
    const data = { A: Buffer.from([0x61, 0xff]).toString("base64") };
    expect(variablesOf([{ metadata: {}, data }])).toEqual([{ name: "A", value: "a\ufffd" }]);
  });

  it("treats names that are special to JavaScript as names", () => {
    const data = JSON.parse('{"__proto__":"MQ==","constructor":"Mg=="}') as Record<string, string>;
    expect(variablesOf([{ metadata: {}, data }])).toEqual([
      { name: "__proto__", value: "1" },
      { name: "constructor", value: "2" },
    ]);
  });
});
