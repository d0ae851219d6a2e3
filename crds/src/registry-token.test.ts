import { createPublicKey, generateKeyPairSync, type JsonWebKey, verify } from "node:crypto";
import { expect, test } from "vitest";
import {
  mintRegistryPassword,
  mintRegistryToken,
  organizationOfRegistryPassword,
  registryKeySet,
} from "./registry-token.ts";

const pem = (namedCurve: string): string =>
  generateKeyPairSync("ec", { namedCurve }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const json = (part = ""): unknown => JSON.parse(Buffer.from(part, "base64url").toString());

test("a token names its repositories, ends, and is signed by the key of the set that its header names", () => {
  const key = pem("P-256");
  const access = [{ repository: "oabc/pdef", actions: ["push" as const, "pull" as const] }];
  const token = mintRegistryToken(key, "build-1", access, 300, new Date("2026-01-01T00:00:00.900Z"));
  const [header, claims, signature = ""] = token.split(".");
  const [known] = registryKeySet(key).keys;
  expect(json(header)).toEqual({ typ: "JWT", alg: "ES256", kid: known?.kid });
  expect(json(claims)).toEqual({
    iss: "slipway",
    aud: "slipway-registry",
    sub: "build-1",
    nbf: 1767225600,
    iat: 1767225600,
    exp: 1767225900,
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    access: [{ type: "repository", name: "oabc/pdef", actions: ["push", "pull"] }],
  });
  const publicKey = createPublicKey({ key: known as unknown as JsonWebKey, format: "jwk" });
  const signed = (text: string): boolean =>
    verify(
      "sha256",
      Buffer.from(text),
      { key: publicKey, dsaEncoding: "ieee-p1363" },
      Buffer.from(signature, "base64url"),
    );
  expect(signed(`${header}.${claims}`)).toBe(true);
  expect(signed(`${header}.${claims}x`)).toBe(false);
});

test("the set has no private part, and a key is named by its content", () => {
  const key = pem("P-256");
  expect(Object.keys(registryKeySet(key).keys[0] ?? {})).toEqual([
    "kty",
    "crv",
    "x",
    "y",
    "kid",
    "alg",
    "use",
  ]);
  expect(registryKeySet(key)).toEqual(registryKeySet(key));
  expect(registryKeySet(key).keys[0]?.kid).not.toBe(registryKeySet(pem("P-256")).keys[0]?.kid);
  expect(() => registryKeySet(pem("P-384"))).toThrow("no ECDSA key on P-256");
});

test("a password to pull with names its organization, and is no token of the registry", () => {
  const password = mintRegistryPassword(pem("P-256"), "oabc", 300, new Date("2026-01-01T00:00:00Z"));
  expect(json(password.split(".")[1])).toMatchObject({
    iss: "slipway",
    aud: "slipway-registry-pull",
    org: "oabc",
    iat: 1767225600,
    exp: 1767225900,
  });
  expect(json(password.split(".")[1])).not.toHaveProperty("access");
});

test("a password names its organization while it is valid, for who has the key", () => {
  const key = pem("P-256");
  const now = new Date("2026-01-01T00:00:00Z");
  const password = mintRegistryPassword(key, "oabc", 300, now);
  const of = (text: string, at = now) => organizationOfRegistryPassword(key, text, at);
  expect(of(password)).toBe("oabc");
  expect(of(password, new Date(now.getTime() + 299_999))).toBe("oabc");
  expect(of(password, new Date(now.getTime() + 300_000))).toBeUndefined();
  const [header, claims, signature] = password.split(".");
  const other = Buffer.from(JSON.stringify({ ...Object(json(claims)), org: "oxyz" })).toString("base64url");
  for (const wrong of [
    `${header}.${other}.${signature}`,
    mintRegistryPassword(pem("P-256"), "oabc", 300, now),
    mintRegistryToken(key, "organization/oabc", [], 300, now),
    "",
    "a.b.c",
    `${password}.x`,
    "x".repeat(10_000),
  ]) {
    expect(of(wrong)).toBeUndefined();
  }
});
