import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { RECEIVERS_HOST } from "../drains.ts";
import { eventually } from "../eventually.ts";
import { allLines, searchLogs, writeLines } from "../logs.ts";
import { DRAINS, ROUNDS, type World, within } from "./world.ts";

/** Lines of a log, each of which is found once, and reaches a receiver of the project's drain. */
export async function logs(world: World): Promise<string> {
  const { call, application, drained, undo } = world;
  const { id, domain } = await application("logs", { envs: [{ name: "SAMPLE_FAULTS", value: "1" }] });
  const drain = await call<{ id: string }>("POST", DRAINS, {
    name: "Killed",
    project_id: id,
    otlp_http: { endpoint: `https://${RECEIVERS_HOST}:${drained.port}` },
    ca: drained.ca,
  });
  expect(drain.status, JSON.stringify(drain.body)).toBe(201);
  undo.push(() => call("DELETE", `${DRAINS}/${drain.body.data?.id}`));
  const [rounds, lines] = [5 * ROUNDS, 100];
  for (let round = 1; round <= rounds; round += 1) {
    await writeLines(domain, `round ${round} line`, lines);
    await sleep(5_000);
  }
  const last = `round ${rounds} line ${lines}`;
  await eventually(
    async () => expect((await searchLogs(call, id, { q: last })).data[0]?.message).toBe(last),
    { within },
  );
  const found = await allLines(call, id, { q: "round", order: "oldest" });
  const want = Array.from({ length: rounds * lines }, (_, index) => {
    const round = Math.floor(index / lines) + 1;
    return `round ${round} line ${(index % lines) + 1}`;
  });
  expect(found.map(({ message }) => message)).toEqual(want);
  // At least once: what was sent when the process was killed is sent again.
  await eventually(
    async () => {
      const got = new Set(drained.texts);
      expect(want.filter((line) => !got.has(line))).toEqual([]);
    },
    { within },
  );
  return `${want.length} lines, each found once, and drained`;
}
