import { generateKeyPairSync } from "node:crypto";
import { mintRegistryPassword } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { Failure } from "../errors/failure.ts";
import { basicCredential, exchange, formRequest, grantedAccess } from "./token.ts";

const newKey = () =>
  generateKeyPairSync("ec", { namedCurve: "P-256" })
    .privateKey.export({ type: "pkcs8", format: "pem" })
    .toString();
const key = newKey();
const now = new Date("2026-11-21T12:00:00Z");
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
const codeOf = (work: () => unknown): string | undefined => {
  try {
    work();
  } catch (error) {
    return error instanceof Failure ? error.code : String(error);
  }
  return undefined;
};

describe("what is granted", () => {
  it.each([
    [["repository:acme/pshop:pull"], ["acme/pshop"]],
    [["repository:acme/pshop:pull,push"], ["acme/pshop"]],
    [["repository:acme/pshop:pull repository:acme/pnew:pull"], ["acme/pshop", "acme/pnew"]],
    [["repository:acme/pshop:push"], []],
    [["repository:other/pshop:pull"], []],
    [["repository:acme:pull"], []],
    [["repository:acme-two/pshop:pull"], []],
    [["repository:acme/../other/p:pull"], []],
    [["registry:catalog:*"], []],
    [[""], []],
  ])("of %j is to pull %j", (scopes, repositories) => {
    expect(grantedAccess("acme", scopes)).toEqual(
      repositories.map((repository) => ({ repository, actions: ["pull"] })),
    );
  });
});

describe("the exchange", () => {
  const request = {
    username: "acme",
    password: mintRegistryPassword(key, "acme", 300, now),
    service: "slipway-registry",
    scopes: ["repository:acme/pshop:pull"],
  };

  it("gives a token of some minutes for the one repository", () => {
    const { token, access_token, expires_in, issued_at } = exchange(request, key, now);
    expect(access_token).toBe(token);
    expect([expires_in, issued_at]).toEqual([300, "2026-11-21T12:00:00.000Z"]);
    const { access, exp, iat, sub, aud } = claimsOf(token);
    expect(access).toEqual([{ type: "repository", name: "acme/pshop", actions: ["pull"] }]);
    expect([exp - iat, sub, aud]).toEqual([300, "organization/acme", "slipway-registry"]);
  });

  it("refuses a request without a password, with a wrong one, or for another registry", () => {
    expect(codeOf(() => exchange({ ...request, password: undefined }, key, now))).toBe("CREDENTIAL_MISSING");
    expect(codeOf(() => exchange({ ...request, password: "guess" }, key, now))).toBe("CREDENTIAL_INVALID");
    const late = new Date(now.getTime() + 300_000);
    expect(codeOf(() => exchange(request, key, late))).toBe("CREDENTIAL_INVALID");
    expect(codeOf(() => exchange({ ...request, service: "docker.io" }, key, now))).toBe("VALIDATION_FAILED");
  });

  it("reads both forms that nodes send", () => {
    const form =
      "grant_type=password&service=slipway-registry&scope=repository%3Aacme%2Fp%3Apull&username=u&password=p%2Bq";
    expect(formRequest(Buffer.from(form))).toEqual({
      username: "u",
      password: "p+q",
      service: "slipway-registry",
      scopes: ["repository:acme/p:pull"],
    });
    expect(codeOf(() => formRequest(Buffer.from("grant_type=refresh_token")))).toBe("MALFORMED_BODY");
    const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
    expect(basicCredential(basic("u:p:q"))).toEqual({ username: "u", password: "p:q" });
    for (const wrong of [undefined, basic("u"), "Bearer x", "Basic"]) {
      expect(basicCredential(wrong)).toBeUndefined();
    }
  });
});
