import { describe, expect, it } from "vitest";
import { createSlipway } from "./client.ts";
import { SlipwayError, UNKNOWN_CODE } from "./error.ts";
import type { Send } from "./transport.ts";

const json = (status: number, body: object, headers = {}) =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
const busy = () => json(503, { status: "failed", code: "SERVER_BUSY", message: "busy" });
const plans = () => json(200, { status: "success", data: [] });

/** A client whose requests are answered one after the other. */
function client(...answers: (() => Response | Error)[]) {
  const requests: Request[] = [];
  const send: Send = async (request) => {
    requests.push(request);
    const answer = answers[Math.min(requests.length, answers.length) - 1]?.();
    if (!(answer instanceof Response)) {
      throw answer;
    }
    return answer;
  };
  const slipway = createSlipway({
    url: "https://api.example.com/",
    apiKey: "key",
    fetch: send,
    retries: { baseMs: 1 },
  });
  return { slipway, requests };
}
const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error) => error,
  );
const rename = { params: { path: { id: "pshop" } }, body: { name: "shop-front" } };

describe("a call", () => {
  it("sends the credential, the path and the body, and returns the body of the success", async () => {
    const { slipway, requests } = client(() => json(200, { status: "success", message: "name updated" }));
    const { message } = await slipway.PATCH("/v1/project/{id}/name", rename);
    expect(message).toBe("name updated");
    expect(requests[0]?.url).toBe("https://api.example.com/v1/project/pshop/name");
    expect(requests[0]?.headers.get("x-api-key")).toBe("key");
    expect(await requests[0]?.json()).toEqual({ name: "shop-front" });
  });

  it("is typed by its operation", async () => {
    const { slipway } = client(plans);
    const { data } = await slipway.GET("/v1/project/plans");
    // @ts-expect-error a list is no number
    const wrong: number = data;
    expect(wrong).toEqual([]);
  });

  it("throws the failure envelope, typed by its code", async () => {
    const errors = [{ field: "name", message: "too short" }];
    const body = { status: "failed", code: "VALIDATION_FAILED", message: "name: too short", errors };
    const error = await failure(client(() => json(400, body)).slipway.PATCH("/v1/project/{id}/name", rename));
    expect(error).toBeInstanceOf(SlipwayError);
    expect(error).toMatchObject({ status: 400, code: "VALIDATION_FAILED", errors, details: { errors } });
    expect((error as Error).message).toBe("name: too short");
  });

  it("throws what is no envelope, too", async () => {
    const { slipway } = client(() => new Response("<h1>Not here</h1>", { status: 404 }));
    const error = await failure(slipway.GET("/v1/project/plans"));
    expect(error).toMatchObject({ status: 404, code: UNKNOWN_CODE });
    expect((error as Error).message).toContain("Not here");
  });
});

describe("retries", () => {
  it("send a read again after a transient status and a lost connection", async () => {
    const { slipway, requests } = client(busy, () => new TypeError("fetch failed"), plans);
    expect(await slipway.GET("/v1/project/plans")).toEqual({ status: "success", data: [] });
    expect(requests).toHaveLength(3);
  });

  it("send a write with a key again, with its body, and no other write", async () => {
    const keyed = client(busy, () => json(202, { status: "success" }));
    const headers = { "idempotency-key": "0123456789abcdef" };
    const body = { command: ["true"] };
    await keyed.slipway.POST("/v1/project/{id}/runs", {
      params: { path: { id: "pshop" }, header: headers },
      body,
    });
    expect(await Promise.all(keyed.requests.map((request) => request.json()))).toEqual([body, body]);

    const other = client(busy);
    await failure(other.slipway.PATCH("/v1/project/{id}/name", rename));
    expect(other.requests).toHaveLength(1);
  });

  it("end after four attempts with the failure", async () => {
    const { slipway, requests } = client(busy);
    expect(await failure(slipway.GET("/v1/project/plans"))).toMatchObject({ code: "SERVER_BUSY" });
    expect(requests).toHaveLength(4);
  });

  it("wait for what the server asks, and not for more than a minute", async () => {
    const limited = (seconds: number) => () =>
      json(
        429,
        { status: "failed", code: "RATE_LIMIT_EXCEEDED", message: "later" },
        { "retry-after": seconds },
      );
    const short = client(limited(1), plans);
    const began = performance.now();
    await short.slipway.GET("/v1/project/plans");
    expect(performance.now() - began).toBeGreaterThan(990);

    const long = client(limited(61));
    expect(await failure(long.slipway.GET("/v1/project/plans"))).toMatchObject({ retryAfterSeconds: 61 });
    expect(long.requests).toHaveLength(1);
  });

  it("end with the signal", async () => {
    const { slipway, requests } = client(busy);
    const error = await failure(
      slipway.GET("/v1/project/plans", { signal: AbortSignal.abort(new Error("left")) }),
    );
    expect((error as Error).message).toBe("left");
    expect(requests.length).toBeLessThanOrEqual(1);
  });
});
