import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { AccessEvent, EventBatch } from "@slipway/analytics";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Disk, type DiskFile, realDisk } from "./disk.ts";
import { Spool } from "./spool.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "spool-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const event = (number: number): AccessEvent => ({
  organization: "o1",
  project: "p1",
  at: 1_000 + number,
  status: 200,
  method: "GET",
  route: "/",
  path: `/${number}`,
  userAgent: "",
  sourceIp: "::1",
  bytesReceived: 0,
  bytesSent: 0,
  latencyUs: 1,
});
const at = (offset: number) => ({ "pod/app": { file: "f", offset } });
const open = (disk: Disk = realDisk) => Spool.open(disk, folder, () => 5_000);

test("what was added exists after a restart, in order, with the ids it had", async () => {
  const first = await open();
  await first.add([event(1)], at(10));
  await first.add([event(2), event(3)], at(30));
  const before = await Promise.all([first.read(first.oldest as never)]);
  const second = await open();
  expect(second.count).toBe(2);
  expect(second.positions).toEqual(at(30));
  expect(second.bytes).toBe(first.bytes);
  expect(await second.read(second.oldest as never)).toEqual(before[0]);
  await second.done(second.oldest as never);
  expect((await second.read(second.oldest as never)).events.map(({ path }) => path)).toEqual(["/2", "/3"]);
});

test("the positions are known when all batches are sent, and after lines without events", async () => {
  const first = await open();
  await first.add([event(1)], at(10));
  await first.done(first.oldest as never);
  expect((await open()).positions).toEqual(at(10));
  await (await open()).savePositions(at(99));
  const second = await open();
  expect([second.count, second.positions]).toEqual([0, at(99)]);
  // Events from elsewhere change nothing about it.
  await second.add([event(2)], undefined, "otlp-1");
  const third = await open();
  expect(third.positions).toEqual(at(99));
  expect((await third.read(third.oldest as never)).id).toBe("otlp-1");
});

test("a new process reads the newest batch alone, however many wait", async () => {
  const first = await open();
  for (let number = 1; number <= 20; number += 1) {
    await first.add([event(number)], at(number));
  }
  const read: string[] = [];
  const again = await open({
    ...realDisk,
    read: (path) => {
      read.push(basename(path));
      return realDisk.read(path);
    },
  });
  expect(read).toEqual(["0000000000000020.batch"]);
  expect([again.count, again.bytes, again.positions]).toEqual([20, first.bytes, at(20)]);
  // When its file was written: the one before knew it itself.
  expect(Math.abs((again.oldest?.madeAt ?? 0) - Date.now())).toBeLessThan(60_000);
});

test("files that cannot be read are set aside, and the others are sent", async () => {
  const spool = await open();
  await spool.add([event(1)], at(10));
  await spool.add([event(2)], at(20));
  await writeFile(join(folder, "0000000000000002.batch"), "no gzip");
  const damaged: string[] = [];
  const again = await Spool.open(
    realDisk,
    folder,
    () => 1,
    (name) => damaged.push(name),
  );
  expect(damaged).toEqual(["0000000000000002.batch"]);
  expect([again.count, again.positions]).toEqual([1, at(10)]);
  await again.setAside(again.oldest as never);
  expect((await readdir(folder)).sort()).toEqual([
    "0000000000000001.batch.refused",
    "0000000000000002.batch.damaged",
    "cursor.json",
  ]);
});

test("of files that were set aside the newest ten are kept", async () => {
  const spool = await open();
  for (let i = 1; i <= 13; i += 1) {
    await spool.add([event(i)], at(i));
  }
  while (spool.oldest) {
    await spool.setAside(spool.oldest);
  }
  const left = (await readdir(folder)).filter((name) => name.endsWith(".refused")).sort();
  expect([left.length, left[0]]).toEqual([10, "0000000000000004.batch.refused"]);
  expect((await open()).positions).toEqual(at(13));
});

/** A disk on a machine that dies at one of its steps: before it, in the middle of writing, or right after it. */
class DyingDisk implements Disk {
  #left: number;
  #isDead = false;
  readonly #how: "before" | "torn" | "after";

  constructor(steps: number, how: "before" | "torn" | "after") {
    this.#left = steps;
    this.#how = how;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  async #step(run: () => Promise<void>, torn: () => Promise<void> = async () => {}): Promise<void> {
    if (this.#isDead) {
      throw new Error("dead");
    }
    if (this.#left > 0) {
      this.#left -= 1;
      return run();
    }
    this.#isDead = true;
    if (this.#how === "after") {
      await run();
    }
    if (this.#how === "torn") {
      await torn();
    }
    throw new Error("dead");
  }

  write(path: string, content: Buffer): Promise<void> {
    const half = () => writeFile(path, content.subarray(0, content.length / 2));
    return this.#step(() => realDisk.write(path, content), half);
  }

  rename(from: string, to: string): Promise<void> {
    return this.#step(() => realDisk.rename(from, to));
  }

  remove(path: string): Promise<void> {
    return this.#step(() => realDisk.remove(path));
  }

  read(path: string): Promise<Buffer> {
    return this.#isDead ? Promise.reject(new Error("dead")) : realDisk.read(path);
  }

  list(path: string): Promise<DiskFile[]> {
    return this.#isDead ? Promise.reject(new Error("dead")) : realDisk.list(path);
  }

  free(path: string): Promise<number> {
    return realDisk.free(path);
  }
}

/** Reads numbers 1 to 6 in batches of one or two, sends some in between, as a collector does, from wherever it is. */
async function work(disk: Disk, sent: EventBatch[]): Promise<void> {
  const spool = await open(disk);
  const sendOldest = async () => {
    const oldest = spool.oldest;
    if (!oldest) {
      return;
    }
    sent.push(await spool.read(oldest));
    await spool.done(oldest);
  };
  for (let next = (spool.positions["pod/app"]?.offset ?? 0) + 1; next <= 6; ) {
    const size = next % 3 === 0 ? 2 : 1;
    const numbers = Array.from({ length: size }, (_, index) => next + index).filter((number) => number <= 6);
    // Every third line holds no event.
    const events = numbers.filter((number) => number !== 4).map(event);
    next += size;
    if (events.length > 0) {
      await spool.add(events, at(next - 1));
    } else {
      await spool.savePositions(at(next - 1));
    }
    if (next % 2 === 0) {
      await sendOldest();
    }
  }
  while (spool.oldest) {
    await sendOldest();
  }
}

describe("a machine that dies", () => {
  // Shows: docs/analytics.md#other-ingresses: every request counts once, whenever the collector is
  test.each(["before", "torn", "after"] as const)(
    "%s any step of it loses nothing, and sends nothing under two ids",
    async (how) => {
      let steps = 0;
      for (let isOver = false; !isOver; steps += 1) {
        const sent: EventBatch[] = [];
        const dying = new DyingDisk(steps, how);
        await work(dying, sent).catch((error: Error) => expect(error.message).toBe("dead"));
        isOver = !dying.isDead;
        // And once more while it recovers.
        const again = new DyingDisk(steps % 4, how);
        if (!isOver) {
          await work(again, sent).catch((error: Error) => expect(error.message).toBe("dead"));
        }
        await work(realDisk, sent);
        const byId = new Map(sent.map(({ id, events }) => [id, events]));
        for (const { id, events } of sent) {
          expect(byId.get(id)).toEqual(events);
        }
        const paths = [...byId.values()].flat().map(({ path }) => path);
        expect(paths.sort(), `died at step ${steps}`).toEqual(["/1", "/2", "/3", "/5", "/6"]);
        expect(await readdir(folder)).toEqual(["cursor.json"]);
        await rm(folder, { recursive: true });
      }
      expect(steps).toBeGreaterThan(15);
      await open();
    },
  );
});
