import { afterAll, beforeAll, expect, it } from "vitest";
import { exampleBody, type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";

/** Images in the builds registry: an organization's own are taken, another's are refused before anything is written. */

let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness({ builds: { registryHost: () => "builds.example.com" } });
  headers = harness.key("acme", "* on organization:*", "* on project:*");
  await harness.project("acme", "shop");
});
afterAll(() => harness.close());

const creation = (url: string) => exampleBody({}, { image: { url, is_public: true } });
const send = (method: "POST" | "PATCH", url: string, payload: object) =>
  harness.app.inject({ method, url, headers: { ...headers, "content-type": "application/json" }, payload });

it.each([
  "builds.example.com/other/shop:1",
  "BUILDS.example.com:443/other/shop:1",
  "builds.example.com/acme:1",
])("%s is refused at creation and as a new image", async (image) => {
  const created = await send("POST", "/v1/project", creation(image));
  expect(created.statusCode).toBe(400);
  expect(created.body).toMatch(/config\.image\.url.*registry of builds/);
  const changed = await send("PATCH", "/v1/project/shop/image", { image });
  expect(changed.statusCode).toBe(400);
  expect(changed.body).toMatch(/image.*registry of builds/);
  expect([created.json().code, changed.json().code]).toEqual(["VALIDATION_FAILED", "VALIDATION_FAILED"]);
});

it("an organization's own image, and one of another registry, are taken", async () => {
  for (const image of ["builds.example.com/acme/shop:1", "registry.example.com/other/shop:1"]) {
    expect((await send("PATCH", "/v1/project/shop/image", { image })).statusCode, image).toBe(200);
  }
});
