import { readFileSync } from "node:fs";
import type { GitConnection } from "@slipway/crds";
import { type GitEvent, signBody } from "@slipway/git";
import { beforeEach, describe, expect, it } from "vitest";
import { acceptDelivery, type DeliveryName, type DeliveryPorts } from "./delivery.ts";

/** Recorded from Gitea 1.26. */
const recorded = (name: string): { headers: Record<string, string>; body: Buffer } => {
  const file = new URL(
    `../../../packages/git/src/delivery/testdata/gitea-1.26/${name}.json`,
    import.meta.url,
  );
  const { headers, body } = JSON.parse(readFileSync(file, "utf8"));
  return { headers, body: Buffer.from(body) };
};
const { headers, body } = recorded("push-branch");
const SECRET = "hook-secret";
const G1 = { organizationId: "acme", connectionId: "g1" };
const connection = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "GitConnection",
  metadata: { name: "g1", namespace: "slipway-org-acme" },
  spec: {
    providerId: "forgejo",
    instanceUrl: "https://git.example.com",
    displayName: "Git",
    credentialRef: { name: "g1-credential" },
    revision: 1,
  },
} satisfies GitConnection;

let found: GitConnection | undefined;
let events: GitEvent[];
let known: DeliveryName[];
let failure: Error | undefined;
let ports: DeliveryPorts;
beforeEach(() => {
  found = connection;
  events = [];
  known = [];
  failure = undefined;
  ports = {
    findConnection: async (organizationId, id) =>
      organizationId === "acme" && id === "g1" ? found : undefined,
    hookSecret: async () => SECRET,
    queue: async (name, event) => {
      if (failure) {
        throw failure;
      }
      if (known.some((one) => JSON.stringify(one) === JSON.stringify(name))) {
        return "duplicate";
      }
      known.push(name);
      events.push(event);
      return "queued";
    },
  };
});
const signed = (text: string | Buffer, change: Record<string, string | undefined> = {}) => {
  const bytes = Buffer.from(text);
  const own = {
    "content-type": "application/json",
    "x-gitea-event": "push",
    "x-gitea-delivery": "0a1b2c3d-0001",
    "x-gitea-signature": signBody(SECRET, bytes),
  };
  return acceptDelivery(G1, { ...own, ...change }, bytes, ports);
};

describe("a delivery", () => {
  it("that is signed is taken once", async () => {
    const first = await acceptDelivery(G1, headers, body, ports);
    expect(first).toMatchObject({ kind: "taken", event: { kind: "push", branch: "main" } });
    expect(await acceptDelivery(G1, headers, body, ports)).toEqual({ kind: "duplicate" });
    expect(events).toHaveLength(1);
    expect(known).toEqual([
      { organizationId: "acme", connectionId: "g1", deliveryId: headers["x-gitea-delivery"] },
    ]);
  });

  it("that could not be kept is taken when it comes again", async () => {
    failure = new Error("the ledger is unavailable");
    await expect(acceptDelivery(G1, headers, body, ports)).rejects.toThrow("unavailable");
    failure = undefined;
    expect(await acceptDelivery(G1, headers, body, ports)).toMatchObject({ kind: "taken" });
  });

  it("whose body was changed is refused", async () => {
    const other = Buffer.from(body.toString().replace("main", "mein"));
    expect(await acceptDelivery(G1, headers, other, ports)).toEqual({ kind: "unsigned" });
    expect(events).toEqual([]);
  });

  it("without a signature is refused, whatever its body", async () => {
    for (const text of [body, "", "{", "\0"]) {
      const bare = { ...headers, "x-gitea-signature": "", "x-hub-signature-256": "" };
      expect(await acceptDelivery(G1, bare, Buffer.from(text), ports)).toEqual({ kind: "unsigned" });
    }
  });

  it("to a connection that is unknown or revoked is refused in the same way", async () => {
    expect(await acceptDelivery({ ...G1, connectionId: "g2" }, headers, body, ports)).toEqual({
      kind: "unsigned",
    });
    found = { ...connection, spec: { ...connection.spec, revokedAt: "2026-01-31T12:00:00Z" } };
    expect(await acceptDelivery(G1, headers, body, ports)).toEqual({ kind: "unsigned" });
  });

  it.each(["push-tag", "push-tag-deleted", "release-deleted"])("of %s is ignored", async (name) => {
    const one = recorded(name);
    expect(await acceptDelivery(G1, one.headers, one.body, ports)).toEqual({ kind: "ignored" });
  });

  it.each([
    ["a form", `payload=${"{}"}`, { "content-type": "application/x-www-form-urlencoded" }],
    ["no type", "{}", { "content-type": undefined }],
    ["broken JSON", "{", {}],
    ["a list, of a kind that starts nothing", "[]", { "x-gitea-event": "issues" }],
    ["null, of a kind that starts nothing", "null", { "x-gitea-event": "issues" }],
    ["keys that stand twice", '{"ref":1,"ref":2}', {}],
    ["endless lists", "[".repeat(100_000), {}],
    ["no repository", '{"ref":"refs/heads/main"}', {}],
    ["no id", "{}", { "x-gitea-delivery": undefined }],
  ])("of %s is no delivery, though signed", async (_, text, change) => {
    expect(await signed(text, change)).toMatchObject({ kind: "invalid", reason: expect.stringMatching(/./) });
    expect(events).toEqual([]);
  });
});
