import { connect } from "node:net";
import { expect, test } from "vitest";
import { apiClient } from "./support/api.ts";
import { stack } from "./support/stack.ts";

/** What a client meets at the API's entry point beside its operations: through the ingress, not past it. */

// Shows: docs/applications.md#endpoints: `GET /docs` | the document as a page
// Shows: docs/applications.md#endpoints: `GET /docs/:file` | the files of that page
test("the documentation is read without a credential, and all of it comes from the API itself", async () => {
  const page = await fetch(`${stack.url}/docs`);
  expect(page.status).toBe(200);
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  const files = [...(await page.text()).matchAll(/(?:src|href)="([^"]*)"/g)].map(([, file]) => String(file));
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    expect(file).toMatch(/^\//);
    const response = await fetch(`${stack.url}${file}`);
    expect([file, response.status]).toEqual([file, 200]);
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(20);
  }
});

// Shows: docs/applications.md#errors-every-operation: 404 | `ROUTE_NOT_FOUND`
// Shows: docs/applications.md#errors-every-operation: 405 | `METHOD_NOT_ALLOWED`, with `Allow`
test("a known path under another method answers 405 with Allow, an unknown one 404", async () => {
  const known = await fetch(`${stack.url}/v1/project/plans`, { method: "DELETE" });
  expect([known.status, known.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  expect(await known.json()).toMatchObject({ status: "failed", code: "METHOD_NOT_ALLOWED" });
  const unknown = await fetch(`${stack.url}/v1/nothing`, { method: "DELETE" });
  expect(unknown.status).toBe(404);
  const head = await fetch(`${stack.url}/v1/project/plans`, { method: "HEAD" });
  expect(head.status).toBe(200);
});

// Shows: docs/applications.md#endpoints: `GET /v1/project/templates` | the templates of creations, to
// Shows: docs/applications.md#errors-project-creation: 400 | `TEMPLATE_NOT_FOUND`
test("templates are listed, and an unknown one is refused by its code", async () => {
  const call = apiClient();
  const { status, body } = await call<{ id: string; revision: number }[]>("GET", "/v1/project/templates");
  expect(status).toBe(200);
  expect(body.data?.map(({ id }) => id)).toContain("static-site");
  const wanted = { template_id: "static-site", template_revision: 999, name: "from-template" };
  expect(await call("POST", "/v1/project", wanted)).toMatchObject({
    status: 400,
    body: { code: "TEMPLATE_NOT_FOUND" },
  });
});

// Shows: docs/applications.md#errors-every-operation: 400 | `MALFORMED_BODY`: broken JSON, bytes that
// Shows: docs/applications.md#errors-every-operation: 413 | `BODY_TOO_LARGE`, with `limit`
test.each<[string, string, string, number[]]>([
  ["a body over the limit", "POST /v1/project", "x".repeat(13 * 1024 * 1024), [413]],
  ["deep nesting", "POST /v1/project", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, [400]],
  ["__proto__", "POST /v1/project", '{"__proto__":{"admin":true}}', [400]],
  ["a key that stands twice", "POST /v1/project", '{"name":"a","name":"b"}', [400]],
  ["a bad id", "DELETE /v1/project/%2e%2e%2fsecrets", "", [400, 404]],
  ["bad percent-encoding", "GET /v1/project/%zz", "", [400, 404]],
  ["NUL in an id", "GET /v1/project/a%00b", "", [400, 404]],
  ["parameters that it does not have", "GET /v1/project/plans?a=1&a=2", "", [400]],
])("%s is answered with a 4xx, and the server lives", async (_about, operation, payload, statuses) => {
  const [method = "", path = ""] = operation.split(" ");
  const headers = { "x-api-key": stack.apiKey, "content-type": "application/json" };
  // fetch would tidy the path up.
  const answer = await raw(`${method} ${path} HTTP/1.1`, headers, payload);
  expect(statuses).toContain(Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]));
  expect((await fetch(`${stack.url}/v1/project/plans`)).status).toBe(200);
});

/** Sends a request as it is written, and returns all that comes back. */
async function raw(line: string, headers: Record<string, string>, payload: string): Promise<string> {
  const { hostname, port, host } = new URL(stack.url);
  const socket = connect(Number(port), hostname);
  const all = { host, connection: "close", "content-length": String(Buffer.byteLength(payload)), ...headers };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
  });
  // A server may answer and close before it has received all.
  socket.on("error", () => {});
  socket.write(`${line}\r\n${head.join("")}\r\n`);
  socket.write(payload);
  await new Promise((resolve) => socket.once("close", resolve));
  return answer;
}
