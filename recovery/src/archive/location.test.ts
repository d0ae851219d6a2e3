import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bucketSettings } from "./bucket-settings.ts";
import { nameIn, openLocation } from "./location.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "location-"));
});
afterAll(() => rm(folder, { recursive: true }));

test.for<[text: string, place: string, name: string | undefined]>([
  ["s3://backups", "s3://backups/", undefined],
  ["s3://backups/platform", "s3://backups/platform/", undefined],
  ["s3://backups/a/b/", "s3://backups/a/b/", undefined],
  ["s3://backups/a/platform-1.age", "s3://backups/a/", "platform-1.age"],
  ["s3://backups/one.age", "s3://backups/", "one.age"],
  ["nowhere/", "nowhere/", undefined],
  ["nowhere/one.age", "nowhere", "one.age"],
  ["one", ".", "one"],
])("%s is in %s", async ([text, place, name]) => {
  const location = await openLocation(text, {});
  expect([location.storage.place, location.name]).toEqual([place, name]);
});

test("a folder stands for its newest archive", async () => {
  await expect(nameIn(await openLocation(folder, {}))).rejects.toThrow(`there is no backup in ${folder}`);
  for (const name of [
    "platform-20260101T000000Z-0000000a.age",
    "platform-20260201T000000Z-0000000b.age",
    "z.age",
  ]) {
    await writeFile(join(folder, name), "");
  }
  expect(await nameIn(await openLocation(folder, {}))).toBe("platform-20260201T000000Z-0000000b.age");
  expect(await nameIn(await openLocation(join(folder, "z.age"), {}))).toBe("z.age");
});

test("a bucket is reached as Amazon's own variables say", () => {
  expect(bucketSettings("b", "p", {})).toEqual({
    bucket: "b",
    prefix: "p/",
    endpoint: undefined,
    region: "us-east-1",
    forcePathStyle: true,
  });
  const variables = {
    AWS_ENDPOINT_URL: "https://other.example",
    AWS_ENDPOINT_URL_S3: "https://s3.example",
    AWS_REGION: "",
    AWS_DEFAULT_REGION: "eu-1",
    SLIPWAY_S3_FORCE_PATH_STYLE: "false",
  };
  expect(bucketSettings("b", "", variables)).toMatchObject({
    prefix: "",
    endpoint: "https://s3.example",
    region: "eu-1",
    forcePathStyle: false,
  });
  expect(() => bucketSettings("b", "", { AWS_ENDPOINT_URL: "s3.example" })).toThrow("AWS_ENDPOINT_URL");
});
