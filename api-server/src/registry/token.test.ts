import { generateKeyPairSync } from "node:crypto";
import { mintRegistryPassword } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
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

let harness: FakeHarness;
let registryKey: string | undefined = key;
beforeAll(async () => {
  harness = await startFakeHarness({ builds: { registryKey: () => registryKey } });
});
afterAll(() => harness.close());

const scope = "repository:acme/pshop:pull";
const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`acme:${password}`).toString("base64")}`,
});
const get = (headers: Record<string, string>, query = `service=slipway-registry&scope=${scope}`) =>
  harness.app.inject({ url: `/registry/token?${query}`, headers });
const post = (form: Record<string, string>, type = "application/x-www-form-urlencoded; charset=utf-8") =>
  harness.app.inject({
    method: "POST",
    url: "/registry/token",
    headers: { "content-type": type },
    payload: new URLSearchParams(form).toString(),
  });
const form = {
  grant_type: "password",
  service: "slipway-registry",
  client_id: "containerd-client",
  username: "acme",
  scope,
};
const accessOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).access;
const granted = [{ type: "repository", name: "acme/pshop", actions: ["pull"] }];

describe("the realm of the builds' registry", () => {
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /registry/token` | a token of the builds'
  // Shows: docs/git.md#source-and-builds-over-v1: `POST /registry/token` | a token of the builds'
  it("answers both forms in the registry's own envelope", async () => {
    const answers = [
      await get(basic(mintRegistryPassword(key, "acme", 300))),
      await post({ ...form, password: mintRegistryPassword(key, "acme", 300) }),
    ];
    for (const answer of answers) {
      expect([answer.statusCode, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
      expect(accessOf(answer.json().access_token)).toEqual(granted);
    }
  });

  it("grants no access to another organization's images", async () => {
    const answer = await get(basic(mintRegistryPassword(key, "other", 300)));
    expect([answer.statusCode, accessOf(answer.json().token)]).toEqual([200, []]);
  });

  it("refuses a request without a password, or with a wrong one", async () => {
    expect((await get({})).json().code).toBe("CREDENTIAL_MISSING");
    expect((await get(basic("guess"))).json().code).toBe("CREDENTIAL_INVALID");
    expect((await post({ ...form, password: "guess" })).statusCode).toBe(401);
    expect((await post({ grant_type: "refresh_token" })).statusCode).toBe(400);
    expect(harness.logged()).not.toContain("guess");
  });

  // Shows: docs/git.md#source-and-builds-over-v1: 503 `REGISTRY_UNAVAILABLE` | this platform has no
  it("says so where there is no registry", async () => {
    registryKey = undefined;
    const answer = await get(basic(mintRegistryPassword(key, "acme", 300)));
    registryKey = key;
    expect([answer.statusCode, answer.json().code]).toEqual([503, "REGISTRY_UNAVAILABLE"]);
  });
});
