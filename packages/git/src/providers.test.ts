import { generateKeyPairSync } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startHttpsServer, type TestServer } from "../../../test/kit/git/https-server.ts";
import { SsrfSafeFetch } from "./net/fetch.ts";
import { GitProviders } from "./providers.ts";

const pem = () =>
  generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
    type: "pkcs8",
    format: "pem",
  }) as string;
const account = { providerId: "github", instanceUrl: "https://github.com", username: "", token: "" };
let server: TestServer;
let fetch: SsrfSafeFetch;
let minted = 0;
beforeAll(async () => {
  server = await startHttpsServer((request, response) => {
    const isToken = request.url?.endsWith("/access_tokens");
    if (isToken) {
      minted += 1;
    }
    const body = isToken
      ? { token: `ghs_${minted}`, expires_at: "2999-01-01T00:00:00Z" }
      : { total_count: 0, repositories: [] };
    response.writeHead(isToken ? 201 : 200).end(JSON.stringify(body));
  });
  fetch = new SsrfSafeFetch({ ca: server.ca, allowedHosts: [server.host] });
});
afterAll(async () => {
  await fetch.close();
  await server.close();
});

it("keeps an installation's token for the next caller, until the App has another key", async () => {
  let privateKey = pem();
  const githubApp = () => ({ appId: "1", apiUrl: server.url, cloneUrl: "https://github.com", privateKey });
  const providers = new GitProviders({ fetch, githubApp });
  await providers.open({ ...account, installationId: "5" }).check();
  await providers.open({ ...account, installationId: "5" }).check();
  expect(minted).toBe(1);
  await providers.open({ ...account, installationId: "6" }).check();
  expect(minted).toBe(2);
  privateKey = pem();
  await providers.open({ ...account, installationId: "5" }).check();
  expect(minted).toBe(3);
});

it.each([
  ["GitHub without an App", { ...account, installationId: "5" }],
  ["GitHub without an installation", account],
  ["what nobody knows", { ...account, providerId: "gitlab" }],
])("does not open %s", (_, given) => {
  expect(() => new GitProviders({ fetch }).open(given)).toThrow(
    expect.objectContaining({ code: "CapabilityUnavailable" }),
  );
});
