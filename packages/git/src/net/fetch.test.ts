import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startHttpsServer, type TestServer } from "../../../../test/kit/git/https-server.ts";
import { isInCidrs } from "./addresses.ts";
import { SsrfSafeFetch, type SsrfSafeFetchOptions } from "./fetch.ts";

let server: TestServer;
/** Another origin, certified by the same authority's like. */
let asked: string[] = [];

beforeAll(async () => {
  server = await startHttpsServer(
    (request, response) => {
      const { url = "" } = request;
      asked.push(url);
      if (url === "/here") {
        response.writeHead(307, { location: "/there" }).end();
      } else if (url === "/elsewhere") {
        response.writeHead(302, { location: "https://127.0.0.1:1/" }).end();
      } else if (url === "/plain") {
        response.writeHead(302, { location: `http://localhost:${server.port}/` }).end();
      } else if (url === "/round") {
        response.writeHead(302, { location: "/round" }).end();
      } else if (url === "/long") {
        response.end("x".repeat(100_000));
      } else if (url === "/hang") {
        response.write("x");
      } else {
        response.end(`${request.method} ${url}`);
      }
    },
    ["DNS:localhost", "DNS:git.example.com", "IP:127.0.0.1"],
  );
});
afterAll(() => server.close());

const open: SsrfSafeFetch[] = [];
afterEach(async () => {
  asked = [];
  await Promise.all(open.splice(0).map((one) => one.close()));
});

function guarded(options: SsrfSafeFetchOptions = {}): SsrfSafeFetch {
  const made = new SsrfSafeFetch({ ca: server.ca, allowedHosts: [server.host], ...options });
  open.push(made);
  return made;
}

const failing = (code: string) => expect.objectContaining({ name: "GitError", code });

describe("a host that is allowed", () => {
  it("answers", async () => {
    expect(await guarded().send(`${server.url}/x`)).toMatchObject({ status: 200, text: "GET /x" });
  });

  it("is believed with a certificate of a trusted authority alone", async () => {
    const before = asked.length;
    await expect(guarded({ ca: undefined }).send(server.url)).rejects.toEqual(
      failing("CertificateUntrusted"),
    );
    expect(asked.length).toBe(before);
  });

  it("is believed under the certificate's names alone", async () => {
    const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    const host = `other.example.com:${server.port}`;
    const answer = guarded({ resolve, allowedHosts: [host] }).send(`https://${host}/`);
    await expect(answer).rejects.toEqual(failing("CertificateUntrusted"));
  });

  it("is allowed on its port alone", async () => {
    const answer = guarded({ allowedHosts: ["localhost:443"] }).send(server.url);
    await expect(answer).rejects.toEqual(failing("AddressRefused"));
  });

  it("answers no more than may be read", async () => {
    const answer = guarded({ maxBytes: 50_000 }).send(`${server.url}/long`);
    await expect(answer).rejects.toEqual(failing("ProviderUnavailable"));
  });

  // Shows: docs/git.md#over-v1: 503 `GIT_PROVIDER_UNAVAILABLE` | the server does not answer in time
  it("answers in time or not at all", async () => {
    const answer = guarded({ timeoutMs: 300 }).send(`${server.url}/hang`);
    await expect(answer).rejects.toMatchObject({ code: "ProviderUnavailable", message: /in time/ });
  });

  it("is aborted as soon as the caller aborts", async () => {
    const answer = guarded().send(server.url, { signal: AbortSignal.abort(new Error("gone")) });
    await expect(answer).rejects.toThrow("gone");
  });
});

describe("a redirect", () => {
  it("within the origin is followed by a read", async () => {
    expect(await guarded().send(`${server.url}/here`)).toMatchObject({ text: "GET /there" });
  });

  it.each(["/elsewhere", "/plain", "/round"])("of %s is refused", async (path) => {
    await expect(guarded().send(server.url + path)).rejects.toEqual(failing("ProviderUnavailable"));
  });

  it("is followed by no write", async () => {
    const answer = guarded().send(`${server.url}/here`, { method: "POST", body: "{}" });
    await expect(answer).rejects.toEqual(failing("ProviderUnavailable"));
    expect(asked).toEqual(["/here"]);
  });
});

describe("a lenient one", () => {
  it("returns the first bytes of an answer, and a redirect as it is", async () => {
    const lenient = guarded({ isLenient: true, maxBytes: 100 });
    expect((await lenient.send(`${server.url}/long`)).text).toBe("x".repeat(100));
    expect(await lenient.send(`${server.url}/elsewhere`)).toMatchObject({ status: 302 });
    expect(asked).toEqual(["/long", "/elsewhere"]);
  });
});

it("a public address that is refused is not connected to", async () => {
  const options = { allowedHosts: [], isRefused: isInCidrs(["192.88.98.1/32"]) };
  const resolve = async () => [{ address: "192.88.98.1", family: 4 }];
  for (const host of ["192.88.98.1", "[::ffff:192.88.98.1]", "[64:ff9b::192.88.98.1]", "git.example.com"]) {
    const answer = guarded({ ...options, resolve }).send(`https://${host}:${server.port}/`);
    await expect(answer).rejects.toEqual(failing("AddressRefused"));
  }
});

describe("an address that is not public", () => {
  it.each([
    "127.0.0.1",
    "[::1]",
    "2130706433",
    "0x7f.1",
    "[::ffff:127.0.0.1]",
    "169.254.169.254",
    "10.0.0.1",
  ])("is refused as %s, without a connection", async (host) => {
    const before = server.connections();
    const answer = guarded({ allowedHosts: [] }).send(`https://${host}:${server.port}/`);
    await expect(answer).rejects.toEqual(failing("AddressRefused"));
    expect(server.connections()).toBe(before);
  });

  // Shows: docs/git.md#over-v1: 400 `GIT_ADDRESS_REFUSED` | one of the host's addresses is not public
  it.each([
    ["alone", [{ address: "127.0.0.1", family: 4 }]],
    [
      "after a public one",
      [
        { address: "192.88.98.1", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ],
    ],
    ["as an IPv6 one", [{ address: "::ffff:7f00:1", family: 6 }]],
  ])("is refused behind a name, %s", async (_, addresses) => {
    const before = server.connections();
    const answer = guarded({ allowedHosts: [], resolve: async () => addresses }).send(
      `https://git.example.com:${server.port}/`,
    );
    await expect(answer).rejects.toEqual(failing("AddressRefused"));
    expect(server.connections()).toBe(before);
  });

  it("is refused without HTTPS, allowed or not", async () => {
    await expect(guarded().send(`http://${server.host}/`)).rejects.toEqual(failing("AddressRefused"));
  });
});

it("a name is resolved once for a connection, which goes to the address that was judged", async () => {
  let times = 0;
  const resolve = async () => {
    times += 1;
    // Another answer the second time would be the attack.
    return [{ address: times === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 }];
  };
  const host = `git.example.com:${server.port}`;
  expect(await guarded({ resolve, allowedHosts: [host] }).send(`https://${host}/x`)).toMatchObject({
    status: 200,
  });
  expect(times).toBe(1);
});

it("a name that nobody knows is no address, and the message names none", async () => {
  const resolve = async () => {
    throw Object.assign(new Error("getaddrinfo ENOTFOUND git.example.com via 10.96.0.10"), {
      code: "ENOTFOUND",
    });
  };
  const answer = guarded({ resolve }).send("https://git.example.com/");
  await expect(answer).rejects.toMatchObject({
    code: "ProviderUnavailable",
    message: "the Git server cannot be reached",
  });
});
