import { generateKeyPairSync } from "node:crypto";
import type { ApiKeyRecord, Member } from "@slipway/ledger";
import { beforeEach, describe, expect, it } from "vitest";
import { Authenticator } from "./authenticator.ts";
import { generateApiKey, ownTokenVerifier, signUserToken } from "./credentials.ts";
import { FailedAttempts } from "./failed-attempts.ts";
import { PrincipalCache } from "./principal.ts";

const key = generateKeyPairSync("ed25519");
const generated = generateApiKey();
const record: ApiKeyRecord = {
  id: generated.id,
  organizationId: "acme",
  sha256: generated.sha256,
  grants: [{ permission: "project.read", resource: "project:*" }],
};

let now: number;
let lookups: number;
let away: boolean;
let keys: Map<string, ApiKeyRecord>;
let members: Member[];
let authenticator: Authenticator;

beforeEach(() => {
  now = 0;
  lookups = 0;
  away = false;
  keys = new Map([[record.id, record]]);
  members = [{ userId: "u1", organizationId: "acme", role: "owner", grants: [] }];
  const ask = async <T>(answer: () => T): Promise<T> => {
    lookups += 1;
    if (away) {
      throw new Error("connection refused");
    }
    return answer();
  };
  const source = {
    findApiKey: (id: string) => ask(() => keys.get(id)),
    findMember: (userId: string, organizationId: string) =>
      ask(() => members.find((m) => m.userId === userId && m.organizationId === organizationId)),
  };
  const cache = new PrincipalCache({ now: () => now, freshMs: 3_000, staleMs: 60_000 });
  const attempts = new FailedAttempts({ limit: 5, now: () => now });
  authenticator = new Authenticator(source, ownTokenVerifier(key), cache, attempts);
});

const authenticate = async (headers: Record<string, string>, address = "192.0.2.1") =>
  authenticator.authenticate(headers, () => address);
const refusal = (status: number, code: string) => expect.objectContaining({ status, code });

describe("an API key", () => {
  // Shows: docs/applications.md#create: `x-api-key`, or `Authorization: Bearer` with an API key or a
  // Shows: docs/applications.md#authentication: 1. an API key in `x-api-key` or as bearer; a user token
  it("is taken from x-api-key and from Authorization", async () => {
    const byKey = await authenticate({ "x-api-key": generated.key });
    const byBearer = await authenticate({ authorization: `Bearer ${generated.key}` });
    expect(byKey).toMatchObject({ organizationId: "acme", kind: "api-key", actor: `api-key:${record.id}` });
    expect(byBearer).toEqual(byKey);
  });

  it("costs one query for many concurrent calls, and none while it is fresh", async () => {
    await Promise.all(Array.from({ length: 50 }, () => authenticate({ "x-api-key": generated.key })));
    expect(authenticator.authenticate({ "x-api-key": generated.key })).not.toBeInstanceOf(Promise);
    expect(lookups).toBe(1);
  });

  // Shows: docs/applications.md#authentication: 5. 401 for a missing or wrong credential, a revoked key
  // Shows: docs/applications.md#administration: `admin api-key revoke`
  it("is refused within seconds of its revocation, even after a long silence", async () => {
    await authenticate({ "x-api-key": generated.key });
    keys.clear();
    now = 3_001;
    await expect(authenticate({ "x-api-key": generated.key })).rejects.toEqual(
      refusal(401, "CREDENTIAL_INVALID"),
    );
  });

  it("serves on while the ledger is away, but not for ever", async () => {
    await authenticate({ "x-api-key": generated.key });
    away = true;
    now = 59_000;
    expect(await authenticate({ "x-api-key": generated.key })).toMatchObject({ organizationId: "acme" });
    now = 61_000;
    await expect(authenticate({ "x-api-key": generated.key })).rejects.toEqual(
      refusal(503, "LEDGER_UNAVAILABLE"),
    );
  });

  it("with a right id and a wrong secret is refused", async () => {
    const wrong = generated.key.slice(0, -4) + (generated.key.endsWith("0000") ? "1111" : "0000");
    await expect(authenticate({ "x-api-key": wrong })).rejects.toEqual(refusal(401, "CREDENTIAL_INVALID"));
  });

  // Shows: docs/applications.md#authentication: 2. `x-organization-id`: required with a user token
  it("may be sent with its own organization, not with another", async () => {
    const headers = { "x-api-key": generated.key };
    expect(await authenticate({ ...headers, "x-organization-id": "acme" })).toBeDefined();
    await expect(authenticate({ ...headers, "x-organization-id": "other" })).rejects.toEqual(
      refusal(403, "ORGANIZATION_FORBIDDEN"),
    );
  });
});

describe("a user token", () => {
  it("of an owner has full access in its organization", async () => {
    const token = await signUserToken(key, "u1", 30);
    const principal = await authenticate({ authorization: `Bearer ${token}`, "x-organization-id": "acme" });
    expect(principal).toMatchObject({ kind: "user", role: "owner", actor: "user:u1" });
    expect(principal.grants.onProject("project.delete", "any")).toBe(true);
  });

  // Shows: docs/applications.md#authentication: 2. `x-organization-id`: required with a user token
  it("needs an organization of which the user is a member", async () => {
    const token = await signUserToken(key, "u1", 30);
    const headers = { authorization: `Bearer ${token}` };
    await expect(authenticate(headers)).rejects.toEqual(refusal(403, "ORGANIZATION_REQUIRED"));
    await expect(authenticate({ ...headers, "x-organization-id": "other" })).rejects.toEqual(
      refusal(403, "ORGANIZATION_FORBIDDEN"),
    );
  });

  // Shows: docs/applications.md#authentication: 1. an API key in `x-api-key` or as bearer; a user token
  it("is not taken from x-api-key, not even in the form in which it is remembered", async () => {
    const token = await signUserToken(key, "u1", 30);
    await authenticate({ authorization: `Bearer ${token}`, "x-organization-id": "acme" });
    for (const text of [token, `acme ${token}`]) {
      await expect(authenticate({ "x-api-key": text })).rejects.toEqual(refusal(401, "CREDENTIAL_INVALID"));
    }
  });

  // Shows: docs/applications.md#authentication: 5. 401 for a missing or wrong credential, a revoked key
  it("signed by another key, or expired, is refused", async () => {
    const foreign = await signUserToken(generateKeyPairSync("ed25519"), "u1", 30);
    const expired = await signUserToken(key, "u1", -1);
    for (const token of [foreign, expired]) {
      const headers = { authorization: `Bearer ${token}`, "x-organization-id": "acme" };
      await expect(authenticate(headers)).rejects.toEqual(refusal(401, "CREDENTIAL_INVALID"));
    }
  });
});

describe("no credential", () => {
  it.each([
    [{}, "CREDENTIAL_MISSING"],
    [{ "x-api-key": "nonsense" }, "CREDENTIAL_INVALID"],
    [{ authorization: "Basic dTpw" }, "CREDENTIAL_INVALID"],
    [{ authorization: "Bearer a.b.c", "x-organization-id": "acme" }, "CREDENTIAL_INVALID"],
  ])("%j answers 401", async (headers, code) => {
    await expect(authenticate(headers as Record<string, string>)).rejects.toEqual(refusal(401, code));
    expect(lookups).toBe(0);
  });
});

describe("invented credentials", () => {
  const invented = () => ({ "x-api-key": generateApiKey().key });
  const invalid = refusal(401, "CREDENTIAL_INVALID");
  const limited = refusal(429, "RATE_LIMIT_EXCEEDED");

  // Shows: docs/authentication.md#clients-that-misbehave: credentials that turn out not to be valid
  it("cost no query beyond a few of their address, while known ones and other addresses are served", async () => {
    await authenticate({ "x-api-key": generated.key });
    for (let one = 0; one < 5; one += 1) {
      await expect(authenticate(invented())).rejects.toEqual(invalid);
    }
    const before = lookups;
    for (let one = 0; one < 50; one += 1) {
      await expect(authenticate(invented())).rejects.toEqual(limited);
    }
    await expect(
      authenticate({ authorization: "Bearer a.b.c", "x-organization-id": "acme" }),
    ).rejects.toEqual(limited);
    expect(lookups).toBe(before);
    // Known, but no longer fresh: queried as usual.
    now = 10_000;
    expect(await authenticate({ "x-api-key": generated.key })).toMatchObject({ organizationId: "acme" });
    await expect(authenticate(invented(), "192.0.2.2")).rejects.toEqual(invalid);
    now = 61_000;
    await expect(authenticate(invented())).rejects.toEqual(invalid);
  });

  // Shows: docs/authentication.md#clients-that-misbehave: the same wrong credential again, or one that
  it("cost none when they come again, nor when they have not the form of a key", async () => {
    const one = invented();
    for (let time = 0; time < 20; time += 1) {
      await expect(authenticate(one)).rejects.toEqual(invalid);
    }
    await expect(authenticate({ "x-api-key": `${generated.key}0` })).rejects.toEqual(invalid);
    expect(lookups).toBe(1);
  });

  it("are counted for organizations that a user is no member of, too", async () => {
    const authorization = `Bearer ${await signUserToken(key, "u1", 1)}`;
    const ask = (organization: string) => authenticate({ authorization, "x-organization-id": organization });
    for (let one = 0; one < 5; one += 1) {
      await expect(ask(`other-${one}`)).rejects.toEqual(refusal(403, "ORGANIZATION_FORBIDDEN"));
    }
    await expect(ask("other-5")).rejects.toEqual(limited);
    expect(lookups).toBe(5);
  });
});
