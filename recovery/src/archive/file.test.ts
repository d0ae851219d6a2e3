import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { directoryStorage } from "./directory.ts";
import { encryptArchive, readArchive } from "./file.ts";
import { type ArchiveRecord, MAX_LINE } from "./record.ts";

let folder: string;
let identity: string;
let recipient: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "archive-"));
  identity = await generateIdentity();
  recipient = await identityToRecipient(identity);
});
afterAll(() => rm(folder, { recursive: true }));

const sql = `insert into notes values ('${randomBytes(60_000).toString("hex")} · ü');\n`;
const records: ArchiveRecord[] = [
  { type: "header", format: 1, id: randomUUID(), createdAt: "2026-01-01T00:00:00.000Z" },
  { type: "object", object: { apiVersion: "v1", kind: "Secret", metadata: { name: "a", namespace: "b" } } },
  { type: "ledger", sql },
  { type: "ledger", sql: "commit;\n" },
  { type: "end", objects: 1, ledgerBytes: Buffer.byteLength(sql) + 8 },
];

async function* of(list: readonly ArchiveRecord[]) {
  yield* list;
}
const writeArchive = (file: string, recipients: string[], list: AsyncIterable<ArchiveRecord>) =>
  directoryStorage(folder).write(basename(file), encryptArchive(recipients, list));
const readAll = async (file: string, key = identity) => {
  const read: ArchiveRecord[] = [];
  for await (const record of readArchive(directoryStorage(folder).read(basename(file)), key)) {
    read.push(record);
  }
  return read;
};

describe("an archive", () => {
  test("is read as it was written, and has nothing in plain text", async () => {
    const file = join(folder, "whole");
    await writeArchive(file, [recipient], of(records));
    expect(await readAll(file)).toEqual(records);
    const bytes = await readFile(file);
    expect(bytes.subarray(0, 21).toString()).toBe("age-encryption.org/v1");
    expect(bytes.includes("Secret")).toBe(false);
  });

  test("overwrites none, and leaves nothing when it cannot be completed", async () => {
    const file = join(folder, "taken");
    await writeFile(file, "before");
    await expect(writeArchive(file, [recipient], of(records))).rejects.toMatchObject({ code: "EEXIST" });
    expect(await readFile(file, "utf8")).toBe("before");
    async function* broken() {
      yield records[0] as ArchiveRecord;
      throw new Error("the apiserver does not answer");
    }
    await expect(writeArchive(join(folder, "broken"), [recipient], broken())).rejects.toThrow(
      "does not answer",
    );
    expect((await readdir(folder)).filter((name) => /broken|partial/.test(name))).toEqual([]);
  });

  test("is not written with a record that could not be read", async () => {
    const huge: ArchiveRecord = { type: "ledger", sql: "\u0001".repeat(MAX_LINE / 6) };
    const file = join(folder, "huge");
    await expect(writeArchive(file, [recipient], of([records[0] as ArchiveRecord, huge]))).rejects.toThrow(
      "longer than",
    );
  });

  test("is read by no other identity", async () => {
    const file = join(folder, "sealed");
    await writeArchive(file, [recipient], of(records));
    await expect(readAll(file, await generateIdentity())).rejects.toThrow();
  });

  test("of which a byte differs, or a part is missing, is rejected", async () => {
    const file = join(folder, "changed");
    await writeArchive(file, [recipient], of(records));
    const bytes = await readFile(file);
    const changed = Buffer.from(bytes);
    const at = Math.floor(bytes.length / 2);
    changed[at] = (changed[at] ?? 0) ^ 1;
    await writeFile(file, changed);
    await expect(readAll(file)).rejects.toThrow();
    await writeFile(file, bytes.subarray(0, bytes.length - 100));
    await expect(readAll(file)).rejects.toThrow();
  });

  test.for<[string, ArchiveRecord[]]>([
    ["without its end", records.slice(0, -1)],
    ["of which an object is missing", [...records.slice(0, 1), ...records.slice(2)]],
    ["that continues after its end", [...records, records[1] as ArchiveRecord]],
    ["without its beginning", records.slice(1)],
    ["of nothing", []],
  ])("%s is not whole", async ([name, list]) => {
    const file = join(folder, name.replaceAll(" ", "-"));
    await writeArchive(file, [recipient], of(list));
    await expect(readAll(file)).rejects.toThrow(/not whole|out of place/);
  });
});
