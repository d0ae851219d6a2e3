import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import { ContainerLog, type Position } from "./container-log.ts";
import { inOrder } from "./log-files.ts";

let podLogs: string;
let container: FakeContainerLog;
let clock: FakeClock;
let gaps: number;
const opened: ContainerLog[] = [];

beforeEach(async () => {
  podLogs = await mkdtemp(join(tmpdir(), "pod-logs-"));
  container = new FakeContainerLog(podLogs, "slipway-ingress_traefik-1_uid");
  clock = new FakeClock();
  gaps = 0;
});
afterEach(async () => {
  for (const log of opened.splice(0)) {
    await log.close();
  }
  await rm(podLogs, { recursive: true, force: true });
});

function tail(start?: Position): ContainerLog {
  const onGap = (files: number) => {
    gaps += files;
  };
  const log = new ContainerLog(container.folder, start, { lines: { maxBytes: 1_000_000 }, clock, onGap });
  opened.push(log);
  return log;
}

/** Reads until nothing more comes, also from files that follow. */
async function all(log: ContainerLog) {
  const lines: { text: string; next: Position }[] = [];
  let isGone = false;
  for (let idle = 0; idle < 6 && !isGone; ) {
    const read = await log.read();
    if (read === "removed") {
      isGone = true;
    } else if (read.length === 0) {
      idle += 1;
      await clock.advance(600);
    } else {
      idle = 0;
      lines.push(...read.map(({ content, next }) => ({ text: content.toString(), next })));
    }
  }
  return { lines, texts: lines.map(({ text }) => text), isGone, last: lines.at(-1)?.next };
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}`);

test("files are in the order in which they were written", () => {
  const names = [
    "1.log",
    "0.log",
    "0.log.20261122-044209",
    "0.log.20261121-010203.gz",
    "1.log.20261123-000000",
  ];
  const noise = ["0.log.20261120-000000.tmp", "x", "0.log.20261121-010203", ".log"];
  expect(inOrder([...names, ...noise])).toEqual([
    "0.log.20261121-010203",
    "0.log.20261122-044209",
    "0.log",
    "1.log.20261123-000000",
    "1.log",
  ]);
});

describe("a log that grows", () => {
  test("is read line by line, each once, and only standard output", async () => {
    await container.start();
    const log = tail();
    expect((await all(log)).texts).toEqual([]);
    await container.write(numbers(1, 3));
    await container.write(["trouble"], "stderr");
    expect((await all(log)).texts).toEqual(numbers(1, 3));
    await container.writeRaw("2026-11-22T04:42:10.5Z stdout F half");
    expect((await all(log)).texts).toEqual([]);
    await container.writeRaw(" and half\nnonsense\n");
    expect((await all(log)).texts).toEqual(["half and half", "damaged"]);
  });

  test("continues where it was left, at every line", async () => {
    await container.start();
    await container.write(numbers(1, 5));
    const { lines } = await all(tail());
    for (const [index, { next }] of lines.entries()) {
      expect((await all(tail(next))).texts).toEqual(numbers(index + 2, 5));
    }
  });

  test("with lines in pieces is continued at the beginning of one", async () => {
    await container.start();
    await container.write(["first"]);
    const long = "x".repeat(100_000);
    await container.writePieces(long, 16_384, 3);
    const log = tail();
    const before = await all(log);
    expect(before.texts).toEqual(["first"]);
    await container.writeRaw("2026-11-22T04:42:10Z stdout P yyy\n2026-11-22T04:42:11Z stdout F z\n");
    const whole = `${"x".repeat(3 * 16_384)}yyyz`;
    expect((await all(log)).texts).toEqual([whole]);
    expect((await all(tail(before.last))).texts).toEqual([whole]);
  });

  test("of more than a chunk, with lines that are too long, loses no other", async () => {
    await container.start();
    const many = Array.from({ length: 3_000 }, (_, i) => `${i} ${"a".repeat(i % 400)}`);
    await container.write(many.slice(0, 1_500));
    await container.writePieces("b".repeat(1_100_000), 16_384);
    await container.writeRaw("c".repeat(600_000));
    await container.writeRaw("\n");
    await container.write(many.slice(1_500));
    const { texts } = await all(tail());
    expect(texts.filter((text) => text !== "damaged" && text !== "oversize")).toEqual(many);
    expect(texts.filter((text) => text === "oversize")).toHaveLength(1);
  });
});

describe("a log that is rotated", () => {
  test("while it is read is read on in every file, once", async () => {
    await container.start();
    const log = tail();
    const read: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      await container.write(numbers(round * 10 + 1, round * 10 + 5));
      read.push(...(await all(log)).texts);
      await container.write(numbers(round * 10 + 6, round * 10 + 10));
      await container.rotate();
      read.push(...(await all(log)).texts);
    }
    expect(read).toEqual(numbers(1, 60));
    expect(gaps).toBe(0);
  });

  // Shows: docs/analytics.md#other-ingresses: logs are read through rotation, compression, restarts and
  test("while nobody reads is read from where it was left, though the file is another one by then", async () => {
    await container.start();
    await container.write(numbers(1, 10));
    const { lines } = await all(tail());
    const left = lines[4]?.next;
    await container.rotate();
    expect((await all(tail(left))).texts).toEqual(numbers(6, 10));
    await container.write(numbers(11, 20));
    await container.rotate();
    await container.write(numbers(21, 30));
    // The first file is compressed now.
    expect((await all(tail(left))).texts).toEqual(numbers(6, 30));
    expect(gaps).toBe(0);
    await container.rotate();
    await container.rotate();
    // And now it is gone: all that is left is read.
    expect((await all(tail(left))).texts).toEqual(numbers(21, 30));
    expect(gaps).toBe(1);
  });

  test("is read to its end though the file is removed while it is open", async () => {
    await container.start();
    const log = tail();
    await container.write(numbers(1, 3));
    expect((await all(log)).texts).toEqual(numbers(1, 3));
    await container.write(numbers(4, 6));
    for (let i = 0; i < 3; i += 1) {
      await container.rotate();
    }
    await container.write(numbers(7, 9));
    expect((await all(log)).texts).toEqual(numbers(4, 9));
    // Nobody saw what came between.
    expect(gaps).toBe(1);
  });

  // Shows: docs/analytics.md#other-ingresses: a full buffer stops the reading; lost files are counted
  test.each([
    { rotations: 2, kept: "all", lost: 0 },
    { rotations: 3, kept: "all", lost: 0 },
    { rotations: 4, kept: "all but one", lost: 1 },
    { rotations: 7, kept: "the last three", lost: 4 },
  ])(
    "$rotations times while nothing is read has $kept, and $lost files are counted",
    async ({ rotations, lost }) => {
      await container.start();
      await container.write(numbers(0, 9));
      const log = tail();
      const read = await log.read();
      for (let i = 1; i <= rotations; i += 1) {
        await log.observeFiles();
        await container.rotate();
        await container.write(numbers(i * 10, i * 10 + 9));
      }
      await log.observeFiles();
      const texts = [...(read === "removed" ? [] : read.map(({ content }) => content.toString()))];
      // Is open, so it stays readable; the kubelet keeps two files beside the one that is written to.
      texts.push(...(await all(log)).texts);
      const missing = numbers(10, 9 + lost * 10);
      expect(texts).toEqual(numbers(0, rotations * 10 + 9).filter((line) => !missing.includes(line)));
      expect(gaps).toBe(lost);
    },
  );

  test("and removed as a whole is counted, when files of it were not read", async () => {
    await container.start();
    await container.write(numbers(1, 3));
    const log = tail();
    await log.observeFiles();
    await container.rotate();
    await container.write(numbers(4, 6));
    await log.observeFiles();
    await container.remove();
    expect(await all(log)).toMatchObject({ texts: numbers(1, 3), isGone: true });
    expect(gaps).toBe(1);
  });

  test.each([
    { left: "its first part", lost: 1, cut: (packed: Buffer) => packed.subarray(0, packed.length / 2) },
    // Nobody has ever seen that it was one.
    { left: "nothing", lost: 0, cut: () => Buffer.alloc(0) },
  ])(
    "and of which a machine without power has left $left holds up nothing, and what is known to be lost is counted",
    async ({ cut, lost }) => {
      await container.start();
      // Random, so that packing it leaves more than one part.
      const many = Array.from({ length: 2_000 }, () => randomBytes(100).toString("hex"));
      const first = [...many, "line 4"];
      await container.write(first);
      await container.rotate();
      await container.write(numbers(5, 6));
      await container.rotate();
      await container.write(numbers(7, 8));
      const packed = (await readdir(container.folder)).find((name) => name.endsWith(".gz")) ?? "";
      const path = join(container.folder, packed);
      await writeFile(path, cut(await readFile(path)));
      const log = tail();
      // Nobody reads yet, and nothing throws.
      await log.observeFiles();
      await new Promise((resolve) => setTimeout(resolve, 50));
      const { texts } = await all(log);
      expect(texts.slice(-4)).toEqual(numbers(5, 8));
      expect(first).toEqual(expect.arrayContaining(texts.slice(0, -4)));
      expect(texts).not.toContain("line 4");
      expect(gaps).toBe(lost);
    },
  );

  test("and observed again only after the file that was read and those behind it were removed is counted", async () => {
    await container.start();
    await container.write(numbers(1, 3));
    const log = tail();
    await log.observeFiles();
    for (let i = 0; i < 4; i += 1) {
      await container.rotate();
      await container.write([`file ${i}`]);
    }
    await log.observeFiles();
    expect((await all(log)).texts).toEqual([...numbers(1, 3), "file 1", "file 2", "file 3"]);
    // Nobody saw how many.
    expect(gaps).toBe(1);
  });

  test("in the middle of a line in pieces gives the line whole", async () => {
    await container.start();
    const log = tail();
    await container.write(["first"]);
    await container.writeRaw("2026-11-22T04:42:10Z stdout P one \n");
    const before = await all(log);
    await container.rotate();
    await container.writeRaw("2026-11-22T04:42:11Z stdout F line\n");
    expect((await all(log)).texts).toEqual(["one line"]);
    expect((await all(tail(before.last))).texts).toEqual(["one line"]);
  });

  test("and what the runtime still writes to the old file is read before the new one", async () => {
    await container.start();
    const log = tail();
    await container.write(["first"]);
    expect((await all(log)).texts).toEqual(["first"]);
    await container.rotate();
    const { appendFile } = await import("node:fs/promises");
    const old = (await readdir(container.folder)).find((name) => name.includes("2026")) ?? "";
    await container.write(["third"]);
    expect(await log.read()).toEqual([]);
    await appendFile(join(container.folder, old), "2026-11-22T04:42:10.5Z stdout F second\n");
    expect((await all(log)).texts).toEqual(["second", "third"]);
  });
});

test("a container that starts again has a file of its own", async () => {
  await container.start();
  const log = tail();
  await container.write(numbers(1, 3));
  const before = await all(log);
  await container.write(numbers(4, 5));
  await container.restart();
  await container.write(numbers(6, 7));
  expect((await all(log)).texts).toEqual(numbers(4, 7));
  expect((await all(tail(before.last))).texts).toEqual(numbers(4, 7));
});

test("the log of a pod that is deleted is read to its end", async () => {
  await container.start();
  const log = tail();
  await container.write(numbers(1, 3));
  await log.read();
  await container.write(numbers(4, 6));
  await container.remove();
  const { texts, isGone } = await all(log);
  expect(texts).toEqual(numbers(4, 6));
  expect(isGone).toBe(true);
});
