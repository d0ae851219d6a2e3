import { METHODS } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { routes } from "../routes.ts";
import { allowedMethods } from "./register.ts";

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());

type Method = "GET";
const call = (method: string, url: string) => harness.app.inject({ method: method as Method, url });

describe.each([...allowedMethods(routes)])("%s", (path, allowed) => {
  const url = path.replace(/:[A-Za-z]+/g, "p1");

  // Shows: docs/applications.md#errors-every-operation: 405 | `METHOD_NOT_ALLOWED`, with `Allow`
  it(`answers 405 with Allow to every method but ${allowed.join(", ")}`, async () => {
    const others = METHODS.filter((method) => method !== "CONNECT" && !allowed.includes(method));
    expect(others.length).toBeGreaterThan(20);
    for (const method of others) {
      const response = await call(method, url);
      expect([method, response.statusCode, response.headers.allow]).toEqual([
        method,
        405,
        allowed.join(", "),
      ]);
      if (method === "HEAD") {
        expect(response.body).toBe("");
      } else {
        expect(response.json()).toMatchObject({ status: "failed", code: "METHOD_NOT_ALLOWED" });
      }
    }
  });

  it("answers OPTIONS with what it has", async () => {
    const response = await call("OPTIONS", url);
    expect([response.statusCode, response.headers.allow, response.body]).toEqual([
      204,
      allowed.join(", "),
      "",
    ]);
  });
});

it("answers HEAD as GET, without the body", async () => {
  const get = await call("GET", "/v1/project/plans");
  const head = await call("HEAD", "/v1/project/plans");
  expect(head.statusCode).toBe(200);
  expect(head.body).toBe("");
  expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
  expect((await call("HEAD", "/v1/project")).statusCode).toBe(401);
});

it("does not take a catalog's path for a project's id", async () => {
  expect((await call("DELETE", "/v1/project/plans")).statusCode).toBe(405);
});

// Shows: docs/applications.md#errors-every-operation: 404 | `ROUTE_NOT_FOUND`
it.each(["/", "/v1", "/v1/nothing", "/v1/project/p1/nothing"])(
  "answers 404 to the unknown path %s under any method",
  async (url) => {
    for (const method of ["GET", "POST", "DELETE", "OPTIONS", "PROPFIND"]) {
      const response = await call(method, url);
      expect([method, response.statusCode, response.json().code]).toEqual([method, 404, "ROUTE_NOT_FOUND"]);
    }
  },
);
