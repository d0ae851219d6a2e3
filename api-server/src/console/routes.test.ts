import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { consoleFiles } from "./routes.ts";

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());

const { version, files } = consoleFiles();
const get = (url: string, headers: Record<string, string> = {}, method: "GET" | "HEAD" = "GET") =>
  harness.app.inject({ method, url, headers });

const FOR_GOOD = "public, max-age=31536000, immutable";
/** All that an answer says against being framed, sniffed, or given what the page did not come with. */
function expectSecurityHeaders(headers: Record<string, unknown>): void {
  const policy = String(headers["content-security-policy"]).split("; ");
  expect(policy).toEqual(
    expect.arrayContaining([
      "default-src 'none'",
      "script-src 'self'",
      expect.stringMatching(/^style-src 'self' 'sha256-[A-Za-z0-9+/]{43}='$/),
      "connect-src 'self'",
      // What the page itself has fetched.
      "frame-src blob:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ]),
  );
  const others = policy.filter((directive) => directive !== "frame-src blob:");
  expect(others.join()).not.toMatch(/unsafe|\*|https?:|data:|blob:/);
  expect(headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": expect.stringContaining("camera=()"),
  });
}

describe("/console", () => {
  // Shows: docs/console.md#what-is-promised: `GET /console` | the page, without a credential
  it("is a page that needs no credential, and names its files by their hash", async () => {
    const response = await get("/console");
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(response.headers["cache-control"]).toBe("no-cache");
    expectSecurityHeaders(response.headers);
    const named = [...response.body.matchAll(/(?:src|href)="(\/console\/[^"]*)"/g)].map(([, path]) => path);
    const all = [...files.keys()].map((path) => `/console/${version}/${path}`);
    expect([...new Set(named)].sort()).toEqual(all.sort());
    expect(all.length).toBeGreaterThan(25);
    // No script and no style inside the page: the policy forbids both.
    expect(response.body).not.toMatch(/<script>|<style|\son[a-z]+=|style=/);
    expect((await get("/console/")).body).toBe(response.body);
  });

  // Shows: docs/console.md#what-is-promised: `GET /console` | the page, without a credential
  it("is revalidated every time, at the cost of a 304", async () => {
    const first = await get("/console");
    const etag = String(first.headers.etag);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await get("/console", { "if-none-match": known });
      expect([known, again.statusCode, again.body]).toEqual([known, 304, ""]);
      expect(again.headers.etag).toBe(etag);
      expectSecurityHeaders(again.headers);
    }
    expect((await get("/console", { "if-none-match": '"other"' })).statusCode).toBe(200);
  });

  it.each(["/console", `/console/${version}/main.ts`])("answers HEAD to %s without a body", async (url) => {
    const [head, whole] = [await get(url, {}, "HEAD"), await get(url)];
    expect([head.statusCode, head.body]).toEqual([200, ""]);
    expect(head.headers["content-length"]).toBe(String(whole.rawPayload.length));
    expect(head.headers.etag).toBe(whole.headers.etag);
  });
});

describe("a file of the console", () => {
  // Shows: docs/console.md#what-is-promised: `GET /console/*` | the files of the page, and nothing else
  it.each([...files.keys()])("%s is cached forever under its version", async (path) => {
    const response = await get(`/console/${version}/${path}`);
    expect(response.statusCode).toBe(200);
    expect(response.headers["cache-control"]).toBe(FOR_GOOD);
    expect(response.headers["content-type"]).toMatch(
      /^(text\/(css|javascript); charset=utf-8|image\/svg\+xml)$/,
    );
    expectSecurityHeaders(response.headers);
    const again = await get(`/console/${version}/${path}`, {
      "if-none-match": String(response.headers.etag),
    });
    expect([again.statusCode, again.body]).toEqual([304, ""]);
  });

  it("is a module without types, and without anything from elsewhere", () => {
    for (const [path, { content }] of files) {
      const text = content.toString();
      // The namespace of SVG is a name, and nothing is fetched by it.
      expect([path, text.replaceAll("http://www.w3.org/2000/svg", "")]).not.toEqual([
        path,
        expect.stringMatching(/https?:\/\/|@import|url\(|innerHTML|outerHTML|insertAdjacentHTML|\beval\b/),
      ]);
      for (const [, from = ""] of text.matchAll(/^import [^;]* from "([^"]+)"/gm)) {
        expect(files.has(new URL(from, `file:///${path}`).pathname.slice(1))).toBe(true);
      }
      expect(text).not.toMatch(/^(?:export )?(?:interface|type) /m);
    }
  });

  // Shows: docs/console.md#what-is-promised: `GET /console/*` | the files of the page, and nothing else
  it("of another version is given as it is now, and not kept", async () => {
    const response = await get("/console/0123456789abcdef/main.ts", { "if-none-match": `"${version}"` });
    expect([response.statusCode, response.body]).toEqual([200, files.get("main.ts")?.content.toString()]);
    expect(response.headers["cache-control"]).toBe("no-store");
    expect(response.headers.etag).toBeUndefined();
  });

  // Shows: docs/console.md#what-is-promised: `GET /console/*` | the files of the page, and nothing else
  it.each([
    "main.ts",
    `${version}/`,
    `${version}/none.ts`,
    `${version}/tsconfig.json`,
    `${version}/lib/shapes.ts`,
    `${version}/lib/format.test.ts`,
    `${version}/../main.ts`,
    `${version}/..%2f..%2fpackage.json`,
    `${version}/%2e%2e/package.json`,
    `${version}/main.ts%00`,
    `${version}/main.ts/`,
    "constructor/main.ts",
    `${version}/constructor`,
  ])("is not %s", async (path) => {
    const response = await get(`/console/${path}`);
    expect([path, [400, 404].includes(response.statusCode)]).toEqual([path, true]);
    expect(response.json()).toMatchObject({ status: "failed" });
  });
});
