import type { Clock } from "@slipway/process";
import { expect, it } from "vitest";
import { type Answer, type Call, readAnswer } from "./client.ts";
import { TestFailure } from "./failure.ts";
import { poll } from "./poll.ts";
import { deleteProject } from "./projects.ts";
import { explain } from "./run.ts";
import { readSettings } from "./settings.ts";

/** Time passes while something waits, and only then. */
function waitingClock(): Clock {
  let ms = 0;
  return {
    now: () => new Date(ms),
    monotonic: () => ms,
    setTimeout: (callback, delay) => {
      ms += delay;
      const handle = setImmediate(callback);
      return { cancel: () => clearImmediate(handle) };
    },
  };
}

const budget = () => ({ clock: waitingClock(), deadline: 60_000 });

/** An API that answers each request with the next of its answers, and the last one from then on. */
function scripted(answers: Readonly<Record<string, Answer[]>>): { call: Call; requests: string[] } {
  const requests: string[] = [];
  const call = async (method: string, path: string) => {
    const request = `${method} ${path}`;
    const sent = requests.filter((one) => one === request).length;
    requests.push(request);
    const script = answers[request] ?? [];
    return script[Math.min(sent, script.length - 1)] ?? { status: 500, message: `unexpected ${request}` };
  };
  return { call: call as Call, requests };
}

const ok = (data?: unknown): Answer => ({ status: 200, message: "", data });
const gone: Answer = { status: 404, code: "PROJECT_NOT_FOUND", message: "project not found" };

it("a job whose run is active is deleted once its run is cancelled, and read until it is not found", async () => {
  const pending: Answer = { status: 409, code: "JOB_RUNS_PENDING", message: "a run is active" };
  const { call, requests } = scripted({
    "DELETE /v1/project/p": [pending, { status: 429, message: "too many requests" }, ok()],
    "GET /v1/project/p/job-runs?status=running": [ok({ runs: [{ id: "r", status: "running" }] })],
    "POST /v1/project/p/job-runs/r/cancel": [ok()],
    "GET /v1/project/p": [ok({ status: "running" }), gone],
  });
  await deleteProject(call, budget(), "p");
  expect(requests.filter((request) => !request.startsWith("GET /v1/project/p/"))).toEqual([
    "DELETE /v1/project/p",
    "POST /v1/project/p/job-runs/r/cancel",
    "DELETE /v1/project/p",
    "DELETE /v1/project/p",
    "GET /v1/project/p",
    "GET /v1/project/p",
  ]);
});

it("what another run has already deleted is deleted", async () => {
  const deleted: Answer = { status: 409, code: "PROJECT_ALREADY_DELETED", message: "already deleted" };
  const { call } = scripted({ "DELETE /v1/project/p": [deleted], "GET /v1/project/p": [gone] });
  await deleteProject(call, budget(), "p");
});

it("a deletion that the key may not do fails immediately, and names the grants", async () => {
  const refused: Answer = { status: 403, code: "FORBIDDEN", message: "insufficient permission" };
  const { call, requests } = scripted({ "DELETE /v1/project/p": [refused] });
  const failure = await deleteProject(call, budget(), "p").catch((error: Error) => error);
  expect(explain(failure)).toEqual([
    "FAILED: DELETE /v1/project/p: 403 FORBIDDEN: insufficient permission",
    expect.stringContaining("the grants of the key"),
  ]);
  expect(requests).toHaveLength(1);
});

it("waiting ends at the deadline, with what was missing last", async () => {
  const waiting = poll(budget(), { what: "a pod", check: "the pod" }, async () => ({ waiting: "no node" }));
  await expect(waiting).rejects.toThrow(/^waited (58|60) s for a pod: no node$/);
});

it("waiting ends when the pod is stopped", async () => {
  const stop = new AbortController();
  const stopped = poll({ ...budget(), signal: stop.signal }, { what: "a pod", check: "" }, async () => {
    stop.abort();
    return { waiting: "no node" };
  });
  await expect(stopped).rejects.toThrow(TestFailure);
});

it("an answer that is no JSON is not taken for the API's", () => {
  expect(readAnswer(404, "404 page not found\n")).toEqual({
    status: 404,
    message: "no answer of the API: 404 page not found",
  });
  expect(readAnswer(200, '{"status":"success","data":{"a":1}}')).toEqual({
    status: 200,
    message: "",
    data: { a: 1 },
  });
});

it("the key of a Secret may end in a line feed; without an image for jobs they run the application's", () => {
  const env = { SLIPWAY_URL: "http://slipway-api-server.slipway-system", SLIPWAY_API_KEY: "slw_1\n" };
  const settings = readSettings({ ...env, SLIPWAY_IMAGE_HTTP: "docker.io/library/nginx:1.29" });
  expect(settings).toMatchObject({ apiKey: "slw_1", job: { image: "docker.io/library/nginx:1.29" } });
  expect(settings.ingressUrl).toBeUndefined();
  expect(() => readSettings(env)).toThrow("SLIPWAY_IMAGE_HTTP: is not set");
});
