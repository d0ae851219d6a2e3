import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { docsFiles } from "../docs.ts";

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());

describe("/docs", () => {
  // Shows: docs/applications.md#endpoints: `GET /docs` | the document as a page
  // Shows: docs/applications.md#endpoints: `GET /docs/:file` | the files of that page
  it("is a page that needs no credential and nothing from elsewhere", async () => {
    const response = await harness.app.inject("/docs");
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("text/html; charset=utf-8");
    const policy = String(response.headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    const addresses = [...response.body.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address);
    expect(addresses.length).toBeGreaterThan(5);
    for (const address of addresses) {
      const file = await harness.app.inject(String(address));
      expect([address, file.statusCode]).toEqual([address, 200]);
      expect(file.headers["x-content-type-options"] ?? "").toBe(
        address === "/v1/openapi.json" ? "" : "nosniff",
      );
    }
    // No script and no style inside the page: the policy forbids both.
    expect(response.body).not.toMatch(/<script>|<style|\son[a-z]+=|style=/);
    expect((await harness.app.inject("/docs/")).body).toBe(response.body);
  });

  it.each([...docsFiles.keys()].filter((name) => name !== ""))("has %s", async (name) => {
    const response = await harness.app.inject(`/docs/${name}`);
    expect(response.statusCode).toBe(200);
    expect(response.rawPayload.length).toBeGreaterThan(20);
    expect(response.headers["content-type"]).toMatch(/^(text\/(css|javascript); charset=utf-8|image\/png)$/);
  });

  // Shows: docs/applications.md#endpoints: `GET /docs/:file` | the files of that page
  it.each(["package.json", "swagger-ui.js", "..%2fpackage.json", "%2e%2e", "constructor", "page.js%00"])(
    "has no %s",
    async (name) => {
      const response = await harness.app.inject(`/docs/${name}`);
      expect(response.json()).toMatchObject({ status: "failed" });
      expect([400, 404]).toContain(response.statusCode);
    },
  );
});
