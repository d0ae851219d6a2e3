import { organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { insertCharge } from "../../../test/kit/ledger/charge.ts";
import { projectResource } from "../resources.ts";

/** Budgets over a real kube-apiserver with the API server's own roles, and a real PostgreSQL. */

let harness: RealHarness;
let owner: Awaited<ReturnType<RealHarness["organization"]>>;
beforeAll(async () => {
  harness = await startRealHarness();
  owner = await harness.organization();
});
afterAll(() => harness?.close());

const BUDGET = "/v1/organization/budget";
const send = (method: "GET" | "POST" | "PUT" | "DELETE", url: string, payload?: object) =>
  harness.app.inject({ method, url, headers: owner.headers, ...(payload ? { payload } : {}) });
const charge = (amount: string) => insertCharge(harness.ledger, { organizationId: owner.id, amount });

// Shows: docs/budgets.md#over-v1: 404 `BUDGET_NOT_FOUND`
// Shows: docs/budgets.md#over-v1: 400 `VALIDATION_FAILED`
it("is set, read and removed, within its bounds", async () => {
  expect(statusAndCode(await send("GET", BUDGET))).toEqual([404, "BUDGET_NOT_FOUND"]);
  for (const body of [
    { amount: "0.00" },
    { amount: "1e3" },
    { amount: "-1" },
    { amount: "100000000000" },
    { amount: 100 },
    { amount: "100", notices: [0] },
    { amount: "100", notices: [50, 50] },
    { amount: "100", hard_cap: "yes" },
    { amount: "100", currency: "usd" },
  ]) {
    expect(statusAndCode(await send("PUT", BUDGET, body)), JSON.stringify(body)).toEqual([
      400,
      "VALIDATION_FAILED",
    ]);
  }
  const set = await send("PUT", BUDGET, { amount: "100.50" });
  expect(set.statusCode, set.body).toBe(200);
  const data = { amount: "100.5", notices: [50, 80, 100], hard_cap: false, spent: "0", exhausted: false };
  expect(set.json().data).toMatchObject({ ...data, reached: [] });
  expect((await send("GET", BUDGET)).json().data).toMatchObject(data);
  expect((await send("DELETE", BUDGET)).statusCode).toBe(200);
  expect(statusAndCode(await send("DELETE", BUDGET))).toEqual([404, "BUDGET_NOT_FOUND"]);
});

// Shows: docs/budgets.md#over-v1: 402 `BUDGET_EXHAUSTED`
it("refuses a resume while a hard cap is reached; who pauses or resumes takes the budget's mark away", async () => {
  const id = "pcapped";
  await harness.project(owner.id, id, { paused: true, pausedBy: "budget" });
  const spec = async () => {
    const ref = { namespace: organizationNamespace(owner.id), name: id };
    const { paused, pausedBy } = (await harness.admin.get<Project>(projectResource, ref)).spec;
    return { paused, pausedBy };
  };
  await charge("100");
  await send("PUT", BUDGET, { amount: "100", hard_cap: true });
  expect((await send("GET", BUDGET)).json().data).toMatchObject({ spent: "100", exhausted: true });
  expect((await send("GET", `/v1/project/${id}`)).json().data.paused_by).toBe("budget");
  expect(statusAndCode(await send("POST", `/v1/project/${id}/resume`))).toEqual([402, "BUDGET_EXHAUSTED"]);
  expect(await spec()).toEqual({ paused: true, pausedBy: "budget" });
  await send("PUT", BUDGET, { amount: "100.01", hard_cap: true });
  expect((await send("POST", `/v1/project/${id}/pause`)).statusCode).toBe(200);
  expect(await spec()).toEqual({ paused: true, pausedBy: undefined });
  expect((await send("POST", `/v1/project/${id}/resume`)).statusCode).toBe(200);
  expect(await spec()).toEqual({ paused: undefined, pausedBy: undefined });
});
