import { expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { toWorkload } from "./view.ts";

const amounts = { cpu: "1", memory: "1Gi" };
const plan = { resources: { requests: amounts, limits: amounts } };
const prices = { hourly: "0", monthly: "0", yearly: "0" };
const diskOf = (capacity: number, persistent: boolean, ephemeralRequest?: string) => {
  const project = exampleProject(
    { namespace: "slipway-org-alpha", name: "pshop" },
    { storage: { persistent, capacity } },
  );
  const storagePlans = [{ storage: "ephemeral", persistent: false, prices, ephemeralRequest }];
  const { requests, limits } = toWorkload(
    project,
    { organizationId: "alpha", plan },
    { storagePlans },
  ).resources;
  return { reserved: requests["ephemeral-storage"], most: limits["ephemeral-storage"] };
};

test("all of a node's disk that an instance may fill is reserved, unless the catalog reserves less", () => {
  expect(diskOf(5, false)).toEqual({ reserved: "5Gi", most: "5Gi" });
  expect(diskOf(5, true)).toEqual({ reserved: "1Gi", most: "1Gi" });
  expect(diskOf(5, false, "32Mi")).toEqual({ reserved: "32Mi", most: "5Gi" });
  // Kubernetes refuses a container that reserves more than it may use.
  expect(diskOf(1, false, "2Gi")).toEqual({ reserved: "1Gi", most: "1Gi" });
  expect(diskOf(5, true, "1500Mi")).toEqual({ reserved: "1Gi", most: "1Gi" });
});
