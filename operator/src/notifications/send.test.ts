import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startHttpsServer, type TestServer } from "../../../test/kit/git/https-server.ts";
import { receiverClient, type SenderOptions, sendDelivery } from "./send.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

let server: TestServer;
let received: { url: string; body: string; headers: Record<string, string> }[] = [];
beforeAll(async () => {
  server = await startHttpsServer(
    (request, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        const { url = "" } = request;
        received.push({ url, body, headers: request.headers as Record<string, string> });
        if (url === "/hang") {
          response.write("x");
        } else if (url === "/moved") {
          response.writeHead(307, { location: "/elsewhere" }).end();
        } else {
          response.writeHead(url === "/fails" ? 500 : 200).end(url === "/long" ? "\0".repeat(100_000) : "ok");
        }
      });
    },
    ["DNS:localhost", "IP:127.0.0.1"],
  );
});
afterAll(() => server.close());

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  received = [];
  await Promise.all(open.splice(0).map((one) => one.close()));
});

function send(path: string, options: Partial<SenderOptions> = {}, url = server.url) {
  const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
  const client = receiverClient({
    allowedHosts: [server.host],
    ca: server.ca,
    deniedCidrs: [],
    resolve,
    ...options,
  });
  open.push(client);
  const leased = { url: url + path, eventId: "evt_1", payload: '{"type":"webhook.test"}' };
  return sendDelivery(leased, [SECRET], { client, now: new Date(), signal: new AbortController().signal });
}

it("sends what a receiver verifies", async () => {
  expect(await send("/x")).toEqual({ outcome: "succeeded", responseCode: 200, responseBody: "ok" });
  const [{ body, headers } = { body: "", headers: {} }] = received;
  expect(new Webhook(SECRET).verify(body, headers)).toEqual({ type: "webhook.test" });
  expect(headers).toMatchObject({ "webhook-id": "evt_1", "content-type": "application/json" });
});

// Shows: docs/webhooks.md#delivery: a redirect
it("follows no redirect, and counts another answer than 2xx as failed", async () => {
  expect(await send("/moved")).toMatchObject({ outcome: "refused", responseCode: 307 });
  expect(await send("/fails")).toMatchObject({ outcome: "refused", responseCode: 500 });
  expect(received.map(({ url }) => url)).toEqual(["/moved", "/fails"]);
});

// Shows: docs/webhooks.md#limits: an answer
it("keeps the first bytes of an answer, as text that the ledger takes", async () => {
  const { responseBody = "" } = await send("/long");
  expect(responseBody).toBe("\uFFFD".repeat(1_024));
});

// Shows: docs/webhooks.md#limits: an attempt
it("waits for no answer longer than an attempt may take", async () => {
  expect(await send("/hang", { timeoutMs: 300 })).toEqual({ outcome: "unreachable", error: "timeout" });
});

// Shows: docs/webhooks.md#delivery: a private address
it("connects to no private address, and to none of the cluster's own", async () => {
  const before = server.connections();
  const none = { allowedHosts: [] };
  expect(await send("/", none)).toEqual({ outcome: "unreachable", error: "address_refused" });
  for (const host of ["[::ffff:10.0.0.1]", "169.254.169.254", "[fd00::1]", "hooks.example.com"]) {
    expect(await send("/", none, `https://${host}:${server.port}`)).toMatchObject({
      error: "address_refused",
    });
  }
  const resolve = async () => [{ address: "192.88.98.7", family: 4 }];
  const own = { ...none, resolve, deniedCidrs: ["192.88.98.0/24"] };
  expect(await send("/", own, "https://hooks.example.com")).toMatchObject({ error: "address_refused" });
  expect(server.connections()).toBe(before);
});

it("trusts no certificate of an unknown authority, and says only stable words", async () => {
  expect(await send("/x", { ca: undefined })).toEqual({
    outcome: "unreachable",
    error: "certificate_untrusted",
  });
  const resolve = async () => [];
  const gone = await send("/", { allowedHosts: [], resolve }, "https://hooks.example.com");
  expect(gone).toEqual({ outcome: "unreachable", error: "unreachable" });
});
