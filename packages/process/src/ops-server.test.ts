import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { startOpsServer } from "./ops-server.ts";

test("a path of its own answers what there is now, as JSON; any other is 404", async () => {
  let count = 0;
  const { port, close } = await startOpsServer({
    registry: new Registry(),
    port: 0,
    host: "127.0.0.1",
    health: new Map(),
    ready: new Map(),
    json: new Map([["/requests", () => ({ count: ++count })]]),
  });
  try {
    const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
    const first = await get("/requests");
    expect([first.status, first.headers.get("content-type")]).toEqual([200, "application/json"]);
    expect(await first.json()).toEqual({ count: 1 });
    expect(await (await get("/requests?x=1")).json()).toEqual({ count: 2 });
    expect((await get("/requests/more")).status).toBe(404);
  } finally {
    await close();
  }
});
