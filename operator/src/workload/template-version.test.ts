import { expect, test } from "vitest";
import {
  FIRST_TEMPLATE_VERSION,
  NEWEST_TEMPLATE_VERSION,
  since,
  withTemplateVersion,
} from "./template-version.ts";

const newest = { settingsHash: "settings at 1", status: "succeeded" as const };
const hashOf = ({ templateVersion }: { templateVersion: number }) => `settings at ${templateVersion}`;
const versionOf = (status: object, forNew?: number) =>
  withTemplateVersion({}, status, hashOf, forNew ?? NEWEST_TEMPLATE_VERSION).templateVersion;

test("a project from before versions were recorded stays at the first one", () => {
  expect(versionOf({ deployments: [newest] })).toBe(FIRST_TEMPLATE_VERSION);
});

test("a project stays at the version of its newest deployment, also where new ones get an older one", () => {
  expect(versionOf({ templateVersion: 1, deployments: [newest] })).toBe(1);
  expect(
    versionOf({ templateVersion: 2, deployments: [{ ...newest, settingsHash: "settings at 2" }] }, 1),
  ).toBe(2);
});

test.each([
  ["the first deployment", { deployments: [] }],
  ["no deployment yet", {}],
  ["other settings", { templateVersion: 1, deployments: [{ ...newest, settingsHash: "others at 1" }] }],
  [
    "a deployment that a pause cut short",
    { templateVersion: 1, deployments: [{ ...newest, status: "superseded" }] },
  ],
])("%s gets the version of new deployments", (_, status) => {
  expect(versionOf(status)).toBe(NEWEST_TEMPLATE_VERSION);
  expect(versionOf(status, FIRST_TEMPLATE_VERSION)).toBe(FIRST_TEMPLATE_VERSION);
});

test("a version of a later release is rendered as the newest one that is known", () => {
  const deployments = [{ ...newest, settingsHash: `settings at ${NEWEST_TEMPLATE_VERSION}` }];
  expect(versionOf({ templateVersion: 99, deployments }, FIRST_TEMPLATE_VERSION)).toBe(
    NEWEST_TEMPLATE_VERSION,
  );
});

test("a version has its fields and those of the ones before", () => {
  expect(since(2, {}, { a: 1 })).toEqual({});
  expect(since(2, { templateVersion: 1 }, { a: 1 })).toEqual({});
  expect(since(2, { templateVersion: 2 }, { a: 1 })).toEqual({ a: 1 });
  expect(since(2, { templateVersion: 3 }, { a: 1 })).toEqual({ a: 1 });
});
