import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { failures } from "./catalog.ts";

/** A bug as clients observe it. */

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());

// Shows: docs/applications.md#errors-other-operations: any | 500 `INTERNAL_ERROR`: a bug, no detail of
it("answers 500 to what was not foreseen, in the envelope, with nothing of it in the answer", async () => {
  const headers = harness.key("acme", "project.read on project:*");
  const bug = vi.spyOn(harness.projects, "table").mockImplementation(() => {
    throw new TypeError("cannot read property of 10.0.0.1");
  });
  const response = await harness.app.inject({ url: "/v1/project", headers });
  bug.mockRestore();
  expect(response.json()).toEqual({ status: "failed", message: "internal error", code: "INTERNAL_ERROR" });
  expect(response.statusCode).toBe(500);
  expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
  // The platform's log has it.
  expect(harness.logged()).toContain("cannot read property of 10.0.0.1");
  expect((await harness.app.inject({ url: "/v1/project", headers })).statusCode).toBe(200);
});

it("logs why something else refused what the API would have taken", async () => {
  const headers = harness.key("acme", "project.read on project:*");
  const refusal = vi.spyOn(harness.projects, "table").mockImplementation(() => {
    throw failures.validation([{ field: "name", message: "not here" }], new Error("denied by the policy"));
  });
  const response = await harness.app.inject({ url: "/v1/project", headers });
  refusal.mockRestore();
  expect(response.statusCode).toBe(400);
  expect(response.body).not.toContain("policy");
  expect(harness.logged()).toContain("denied by the policy");
});
