import { createHmac, createPublicKey } from "node:crypto";
import { UnsecuredJWT } from "jose";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AUDIENCE, startIssuer, type TestIssuer } from "../../../test/kit/api-server/issuer.ts";
import type { UserTokenVerifier } from "./credentials.ts";
import { oidcUserId, oidcVerifier } from "./oidc.ts";

let a: TestIssuer;
let b: TestIssuer;
let verifier: UserTokenVerifier;
const failures: string[] = [];

const trusting = (issuers: TestIssuer[], options = {}) =>
  oidcVerifier(
    issuers.map(({ url }) => ({ issuer: url, audience: [AUDIENCE] })),
    {
      cooldownMs: 0,
      failureMs: 0,
      timeoutMs: 1_000,
      onFailure: (_issuer, error) => failures.push(String(error)),
      ...options,
    },
  );

beforeEach(async () => {
  failures.length = 0;
  a = await startIssuer("a");
  b = await startIssuer("b", "RS256");
  verifier = trusting([a, b]);
});
afterEach(() => Promise.all([a.stop(), b.stop()]));

const unavailable = expect.objectContaining({ status: 503, code: "ISSUER_UNAVAILABLE" });

describe("a token of a trusted issuer", () => {
  it("names a user of that issuer", async () => {
    const first = await verifier.verify(await a.token({ sub: "ada" }));
    const second = await verifier.verify(await b.token({ sub: "ada" }));
    expect(first?.userId).toBe(oidcUserId(a.url, "ada"));
    expect(second?.userId).toBe(oidcUserId(b.url, "ada"));
    expect(first?.userId).not.toBe(second?.userId);
    expect((first?.expiresAt ?? 0) - Date.now()).toBeGreaterThan(4 * 60_000);
  });

  it("may be for several audiences", async () => {
    expect(await verifier.verify(await a.token({ aud: ["other", AUDIENCE] }))).toBeDefined();
  });

  it("is accepted when the issuer's clock is slightly off", async () => {
    const now = Math.floor(Date.now() / 1000);
    expect(await verifier.verify(await a.token({ nbf: now + 20 }, { lifetime: now - 20 }))).toBeDefined();
  });

  it("costs two requests at first and none after", async () => {
    for (let count = 0; count < 5; count += 1) {
      await verifier.verify(await a.token());
    }
    expect(a.requests).toEqual(["/.well-known/openid-configuration", "/keys"]);
  });

  it("costs one request where the configuration names the keys' address", async () => {
    const direct = oidcVerifier([{ issuer: a.url, audience: [AUDIENCE], jwksUri: `${a.url}/keys` }]);
    expect(await direct.verify(await a.token())).toBeDefined();
    expect(a.requests).toEqual(["/keys"]);
  });
});

describe("a token is refused", () => {
  it.each<[string, () => Promise<string>]>([
    ["of an issuer that nobody named", () => a.token({ iss: "https://elsewhere.example.com" })],
    ["for another audience", () => a.token({ aud: "another" })],
    ["for no audience", () => a.token({ aud: undefined })],
    ["that has expired", () => a.token({}, { lifetime: "-2m" })],
    ["that is not valid yet", () => a.token({ nbf: Math.floor(Date.now() / 1000) + 120 })],
    ["without a subject", () => a.token({ sub: undefined })],
    ["with an empty subject", () => a.token({ sub: "" })],
    ["with a subject that is no text", () => a.token({ sub: 5 as unknown as string })],
    ["that says it is of one issuer, signed by another", () => b.token({ iss: a.url })],
    ["with the key id of another issuer", () => a.token({}, { kid: b.publicJwk().kid })],
    [
      "of one issuer with the other's key and key id",
      () => b.token({ iss: a.url }, { kid: a.publicJwk().kid }),
    ],
    ["with an unknown key id", () => a.token({}, { kid: "nobodys" })],
  ])("%s", async (_about, make) => {
    expect(await verifier.verify(await make())).toBeUndefined();
  });

  it("without a signature", async () => {
    const claims = { iss: a.url, aud: AUDIENCE, sub: "ada" };
    const none = new UnsecuredJWT(claims).setExpirationTime("5m").encode();
    expect(await verifier.verify(none)).toBeUndefined();
    const [header, payload] = (await a.token()).split(".");
    expect(await verifier.verify(`${header}.${payload}.`)).toBeUndefined();
  });

  it("signed by the public key as if it were a shared secret", async () => {
    const jwk = b.publicJwk();
    const pem = createPublicKey({ key: jwk, format: "jwk" }).export({ type: "spki", format: "pem" });
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
    const exp = Math.floor(Date.now() / 1000) + 300;
    const signed = `${encode({ alg: "HS256", kid: jwk.kid })}.${encode({ iss: b.url, aud: AUDIENCE, sub: "ada", exp })}`;
    for (const secret of [pem, JSON.stringify(jwk)]) {
      const signature = createHmac("sha256", secret).update(signed).digest("base64url");
      expect(await verifier.verify(`${signed}.${signature}`)).toBeUndefined();
    }
  });

  it("whose payload was changed", async () => {
    const [header, , signature] = (await a.token({ sub: "ada" })).split(".");
    const [, payload] = (await a.token({ sub: "root" })).split(".");
    expect(await verifier.verify(`${header}.${payload}.${signature}`)).toBeUndefined();
  });

  it.each(["", "a", "a.b", "a.b.c", "....", "eyJhbGciOiJFUzI1NiJ9..", "é.é.é"])(
    "that is none: %j",
    async (token) => {
      expect(await verifier.verify(token)).toBeUndefined();
    },
  );
});

describe("the issuer's keys", () => {
  it("are followed when they change", async () => {
    const old = await a.token();
    expect(await verifier.verify(old)).toBeDefined();
    await a.rotate({ keepOld: true });
    expect(await verifier.verify(await a.token())).toBeDefined();
    expect(await verifier.verify(old)).toBeDefined();
    await a.rotate();
    expect(await verifier.verify(await a.token())).toBeDefined();
    expect(await verifier.verify(old)).toBeUndefined();
  });

  it("are not fetched for every unknown key", async () => {
    const calm = trusting([a], { cooldownMs: 60_000 });
    await calm.verify(await a.token());
    for (let count = 0; count < 20; count += 1) {
      expect(await calm.verify(await a.token({}, { kid: `made-up-${count}` }))).toBeUndefined();
    }
    expect(a.requests).toHaveLength(2);
  });

  it("serve on while the issuer is away", async () => {
    const soon = trusting([a], { freshMs: 0 });
    await soon.verify(await a.token());
    a.broken = true;
    expect(await soon.verify(await a.token())).toBeDefined();
    expect(failures).toHaveLength(1);
    await a.rotate();
    await expect(soon.verify(await a.token())).rejects.toEqual(unavailable);
    a.broken = false;
    expect(await soon.verify(await a.token())).toBeDefined();
  });

  it("do not serve for ever", async () => {
    const short = trusting([a], { freshMs: 0, staleMs: 0 });
    await short.verify(await a.token());
    a.broken = true;
    await expect(short.verify(await a.token())).rejects.toEqual(unavailable);
  });

  // Shows: docs/applications.md#errors-every-operation: 503 | `ISSUER_UNAVAILABLE`: an OpenID Connect
  it("cannot be verified for an issuer that was never available, without an effect on other issuers", async () => {
    a.broken = true;
    await expect(verifier.verify(await a.token())).rejects.toEqual(unavailable);
    expect(await verifier.verify(await b.token())).toBeDefined();
    a.broken = false;
    expect(await verifier.verify(await a.token())).toBeDefined();
  });

  it("are not requested again right after a failure", async () => {
    const patient = trusting([a], { failureMs: 60_000 });
    a.broken = true;
    for (let count = 0; count < 20; count += 1) {
      await expect(patient.verify(await a.token())).rejects.toEqual(unavailable);
    }
    expect(a.requests).toHaveLength(1);
  });

  it("are not taken from a discovery document of another issuer", async () => {
    const fooled = oidcVerifier([{ issuer: `${a.url}/`, audience: [AUDIENCE] }], {
      onFailure: (_issuer, error) => failures.push(String(error)),
    });
    await expect(fooled.verify(await a.token({ iss: `${a.url}/` }))).rejects.toEqual(unavailable);
    expect(failures[0]).toMatch(/discovery document is of issuer/);
  });
});

describe("a user id", () => {
  it("stays the same, and short whatever the subject", () => {
    expect(oidcUserId("https://id.example.com", "ada")).toBe("oidc:3d38e146cf9fbc8c:ada");
    for (const subject of ["x".repeat(10_000), "with space", "é", "a\u0000b"]) {
      expect(oidcUserId("https://id.example.com", subject)).toMatch(
        /^oidc-digest:[0-9a-f]{16}:[0-9a-f]{64}$/,
      );
    }
  });
});
