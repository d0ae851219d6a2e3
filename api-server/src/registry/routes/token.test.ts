import { generateKeyPairSync } from "node:crypto";
import { mintRegistryPassword } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";

const key = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
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
