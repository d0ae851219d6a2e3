import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { uniqueName } from "../api.ts";
import { eventually } from "../eventually.ts";
import { ROUNDS, type World, within } from "./world.ts";

interface Run {
  readonly status: string;
  readonly exit_code?: number;
}

/** Commands that are started once each, however often the request is sent. */
export async function runs(world: World): Promise<string> {
  const { call, counter, application } = world;
  const { id } = await application("runs");
  for (let round = 1; round <= 2 * ROUNDS; round += 1) {
    const name = uniqueName("run");
    const key = { "idempotency-key": randomUUID() };
    const body = { command: counter.command(name, 5_000, 0) };
    const started = await call<{ run: { id: string } }>("POST", `/v1/project/${id}/runs`, body, key);
    const path = `/v1/project/${id}/runs/${started.body.data?.run.id}`;
    await eventually(
      async () => {
        const { body: read } = await call<{ run: Run }>("GET", path);
        expect(read.data?.run).toMatchObject({ status: "succeeded", exit_code: 0 });
      },
      { within },
    );
    expect(await counter.reports(name)).toEqual(["v1"]);
  }
  await eventually(
    async () => {
      const path = `/v1/project/${id}/runs/cost-summary`;
      const { body } = await call<{ totals: { executed_runs: number }[] }>("GET", path);
      expect(body.data?.totals[0]?.executed_runs).toBe(2 * ROUNDS);
    },
    { within },
  );
  return `${2 * ROUNDS} runs, each once and charged once`;
}
