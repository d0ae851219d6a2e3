import { afterAll, beforeAll, expect, test } from "vitest";
import { startClickHouse, type TestClickHouse } from "../../../../test/kit/servers/clickhouse.ts";
import type { LogEvent } from "../log-line.ts";
import {
  type DrainPosition,
  drainHorizon,
  drainPage,
  nextStored,
  organizationsWithLines,
  savedPositions,
  savePositions,
  skippedLines,
} from "./log-drains.ts";
import { insertLogs } from "./logs.ts";
import { migrate } from "./migrate.ts";
import { name } from "./schema.ts";
import { openStore, type Store } from "./store.ts";

const START_MS = 900_000;

let server: TestClickHouse;
let store: Store;
beforeAll(async () => {
  server = await startClickHouse();
  const { url, username, passwordFile } = server;
  store = openStore({
    url,
    username,
    passwordFile,
    database: "drains",
    caFile: undefined,
    cluster: undefined,
  });
  await migrate(store);
}, START_MS);
afterAll(async () => {
  await store?.client.close();
  await server?.stop();
});

let offset = 0;
const line = (text: string, about: Partial<LogEvent> = {}): LogEvent => {
  offset += 1;
  return {
    ...{ organization: "o1", project: "p1", instance: "i", container: "app", stream: "stdout" },
    ...{ at: `${Date.now()}000000`, level: null, text, continues: false, file: "0123456789abcdef", offset },
    ...{ omittedLines: 0, omittedBytes: 0, lostFiles: 0, days: 8, ...about },
  };
};

test("a reader has each line once, while several writers insert what is of any time", async () => {
  const start: DrainPosition = ["0"];
  const wanted: string[] = [];
  let isWriting = true;
  const writer = async (number: number) => {
    for (let round = 0; round < 25; round += 1) {
      // Late lines too: a node was away for hours.
      const at = `${Date.now() - Math.floor(Math.random() * 3_600_000 * 5)}000000`;
      const events = Array.from({ length: 1 + Math.floor(Math.random() * 300) }, (_, index) =>
        line(`${number} ${round} ${index}`, { at, instance: `i${number}`, project: `p${round % 2}` }),
      );
      await insertLogs(store, { id: `w${number}-${round}`, events });
      wanted.push(...events.map(({ text }) => text));
    }
  };
  const writing = Promise.all([1, 2, 3, 4].map(writer)).finally(() => {
    isWriting = false;
  });
  const found: string[] = [];
  let after = start;
  const read = async (to: number) => {
    for (;;) {
      const page = await drainPage(store, { organization: "o1", after, to, lines: 500, bytes: 10_000 });
      const last = page.at(-1);
      if (!last) {
        return;
      }
      found.push(...page.map(({ text }) => text));
      after = [last.storedAt, last.project, last.at, last.instance, last.container, last.file, last.offset];
    }
  };
  let before = 0;
  while (isWriting) {
    const { horizon } = await drainHorizon(store);
    expect(horizon).toBeGreaterThanOrEqual(before);
    before = horizon;
    await read(horizon);
  }
  await writing;
  await read(Date.now() + 60_000);
  expect(found.length).toBe(wanted.length);
  expect(new Set(found)).toEqual(new Set(wanted));
}, 300_000);

test("rows of before, records of what is left out and other organizations' lines are not read", async () => {
  const organization = "o2";
  await insertLogs(store, {
    id: "o2",
    events: [line("new", { organization }), line("", { organization, omittedLines: 3 })],
  });
  // As a collector of the release before inserts them.
  await store.client.command({
    query: `INSERT INTO ${name(store, "logs")} (organization, project, at, text, file, offset, days)
      VALUES ('o2', 'p1', now64(9), 'old', '0123456789abcdef', 1, 8)`,
  });
  const selection = { organization, after: ["0"] as DrainPosition, to: Date.now() + 60_000 };
  const page = await drainPage(store, { ...selection, lines: 10, bytes: 1_000 });
  expect(page.map(({ text }) => text)).toEqual(["new"]);
  expect(await skippedLines(store, selection)).toBe(1);
  expect(await nextStored(store, selection)).toBe(Number(page[0]?.storedAt));
  expect(await nextStored(store, { ...selection, project: "p9" })).toBeUndefined();
  const window = [0, selection.to] as const;
  expect(await organizationsWithLines(store, ["o2", "o9"], window)).toEqual(new Set(["o2"]));
});

test("of the positions of a drain that of the highest version counts", async () => {
  const saved = (refused: number) => ({
    ...{ drain: "u1", version: refused },
    position: [String(refused)] as DrainPosition,
    refused,
    skipped: 0,
  });
  await savePositions(store, [saved(2)]);
  await savePositions(store, [saved(1)]);
  expect(await savedPositions(store, ["u1", "u2"])).toEqual([saved(2)]);
});
