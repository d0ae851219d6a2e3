import { annotations, type Project } from "@slipway/crds";
import { expect, it } from "vitest";
import { leftToApiMs } from "./claiming.ts";

const claiming = { [annotations.claiming]: "true" };
const born = "2026-01-01T00:00:00Z";
const at = (second: number) => new Date(Date.parse(born) + second * 1000);

it.each([
  ["is left to the API", { annotations: claiming }, 10, 20_000],
  ["is no longer left to an API that must have died", { annotations: claiming }, 31, 0],
  ["is not, once everything is claimed", {}, 10, 0],
  ["is not, when it is being deleted", { annotations: claiming, deletionTimestamp: born }, 10, 0],
])("a new project %s", (_name, metadata, second, left) => {
  const project = { metadata: { name: "shop", creationTimestamp: born, ...metadata } } as Project;
  expect(leftToApiMs(project, at(second))).toBe(left);
});
