import type { Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { ApiProject } from "../projects/api-project.ts";
import { waitForFirstDomain } from "./wait.ts";

const project = (spec: Partial<Project["spec"]> = {}, domain?: string): ApiProject =>
  new ApiProject(
    {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Project",
      metadata: { name: "shop", namespace: "slipway-org-acme" },
      spec: { ...exampleSpec, ...spec },
      status: domain === undefined ? {} : { domain },
    },
    { updatedAt: "", zone: "apps.localhost" },
  );

/** Returns the project in these states, one after the other, the last one always; returns how often it was read. */
async function countReads(states: (ApiProject | undefined)[], first = project()): Promise<number> {
  let count = 0;
  const find = () => states[Math.min(count++, states.length - 1)];
  await waitForFirstDomain(first, { projects: { find } as never });
  return count;
}

describe("waitForFirstDomain", () => {
  it("waits until the status remembers the domain", async () => {
    expect(await countReads([project(), project(), project({}, "shop-front-1.apps.localhost")])).toBe(3);
  });

  it("does not wait for a project that is deleted, nor forever", async () => {
    expect(await countReads([undefined])).toBe(1);
    expect(await countReads([project()])).toBeLessThan(40);
  });

  it("reads nothing where no domain is derived from the name", async () => {
    expect(await countReads([project()], project({ subdomain: "chosen" }))).toBe(0);
    expect(await countReads([project()], project({ exposure: "private" }))).toBe(0);
  });
});
