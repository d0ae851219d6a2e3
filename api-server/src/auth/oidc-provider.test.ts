import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";
import Provider from "oidc-provider";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { oidcUserId, oidcVerifier } from "./oidc.ts";

/** The whole flow with a third-party issuer: discovery, keys, token, organization, answer. */

const AUDIENCE = "https://slipway.example.com";
let server: Server;
let issuer: string;
let harness: FakeHarness;

beforeAll(async () => {
  server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "robot",
        client_secret: "not-a-secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig" }] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: (_context, audience) => ({
          scope: "",
          audience,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  harness = await startFakeHarness({
    verifier: oidcVerifier([{ issuer, audience: [AUDIENCE] }]),
  });
});

afterAll(async () => {
  await harness?.close();
  server?.closeAllConnections();
  server?.close();
});

async function token(): Promise<string> {
  const response = await fetch(`${issuer}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${Buffer.from("robot:not-a-secret").toString("base64")}` },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  const { access_token } = (await response.json()) as { access_token: string };
  return access_token;
}

// Shows: docs/applications.md#authentication: 1. tokens of an OpenID Connect issuer, by configuration
it("admits a member of the organization by its issuer's token, and no other user", async () => {
  harness.member(oidcUserId(issuer, "robot"), "oidc-a", "owner");
  const authorization = `Bearer ${await token()}`;
  const list = (organization?: string) =>
    harness.app.inject({
      url: "/v1/project",
      headers: { authorization, ...(organization ? { "x-organization-id": organization } : {}) },
    });
  expect((await list("oidc-a")).statusCode).toBe(200);
  expect((await list("oidc-b")).json()).toMatchObject({ code: "ORGANIZATION_FORBIDDEN" });
  expect((await list()).json()).toMatchObject({ code: "ORGANIZATION_REQUIRED" });
});

it("still admits the own tokens", async () => {
  const headers = await harness.owner("oidc-a");
  expect((await harness.app.inject({ url: "/v1/project", headers })).statusCode).toBe(200);
});
