import type { Project } from "@slipway/crds";
import { expect, it } from "vitest";
import { creationPendingMs } from "./creation-pending.ts";

const born = "2026-01-01T00:00:00Z";
const at = (second: number) => new Date(Date.parse(born) + second * 1000);

it.each([
  ["is left to the API", true, {}, 10, 20_000],
  ["is no longer left to an API that must have died", true, {}, 31, 0],
  ["is not, once everything is claimed", undefined, {}, 10, 0],
  ["is not, when it is being deleted", true, { deletionTimestamp: born }, 10, 0],
])("a new project %s", (_name, creationPending, more, second, left) => {
  const metadata = { name: "shop", creationTimestamp: born, ...more };
  const project = { metadata, spec: { creationPending } } as Project;
  expect(creationPendingMs(project, at(second))).toBe(left);
});
