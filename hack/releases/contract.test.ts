import { beforeAll, describe, expect, test } from "vitest";
import { breaksOf, type Contract, readContract } from "./contract.ts";
import { recordedContract, recordedVersions } from "./recorded.ts";

let now: Contract;
beforeAll(async () => {
  now = await readContract();
});

test("there is a recorded release", () => {
  expect(recordedVersions()).toContain("0.1.0");
});

test.each(recordedVersions())("nothing that users of %s rely on is broken", (version) => {
  expect(breaksOf(recordedContract(version), now)).toEqual([]);
});

/** A copy of the contract with a change of its JSON. */
function changed(
  change: (contract: {
    // biome-ignore lint/suspicious/noExplicitAny: any part of a document may be changed
    [part: string]: any;
  }) => void,
): Contract {
  const copy = structuredClone(now);
  change(copy);
  return copy;
}

describe("a contract is broken", () => {
  const project = "/v1/project/{id}";

  test.each<[string, Parameters<typeof changed>[0], string]>([
    ["without an operation", ({ api }) => delete api.paths["/v1/project"].post, "POST /v1/project is gone"],
    [
      "without a code",
      (contract) => contract.codes.splice(contract.codes.indexOf("PROJECT_NOT_FOUND"), 1),
      "failure code PROJECT_NOT_FOUND is gone",
    ],
    ["without a metric", ({ metrics }) => delete metrics.slipway_projects, "metric slipway_projects is gone"],
    [
      "by a metric of another type",
      ({ metrics }) => (metrics.slipway_projects.type = "counter"),
      "metric slipway_projects is a counter, was a gauge",
    ],
    [
      "without a label",
      ({ metrics }) => metrics.slipway_projects.labels.pop(),
      "metric slipway_projects has no label",
    ],
    [
      "by another template of a pod",
      ({ podTemplates }) => {
        podTemplates[Object.keys(podTemplates)[0] ?? ""] = "another";
      },
      "are replaced",
    ],
    [
      "by a required parameter",
      ({ api }) =>
        api.paths["/v1/project"].get.parameters.push({
          name: "owner",
          in: "query",
          required: true,
          schema: {},
        }),
      "parameter query owner is required",
    ],
    [
      "by a version that is not served",
      ({ resources }) => (resources["projects.slipway.dev"][0].served = false),
      "projects.slipway.dev v1alpha1 is not served",
    ],
    [
      "by a field of a status that is gone",
      ({ resources }) =>
        delete resources["projects.slipway.dev"][0].schema.openAPIV3Schema.properties.status.properties.phase,
      ".status.phase is gone",
    ],
    [
      "by a field that is required",
      ({ resources }) =>
        resources["projects.slipway.dev"][0].schema.openAPIV3Schema.properties.spec.required.push("command"),
      ".spec.command is required",
    ],
  ])("%s", (_, change, expected) => {
    expect(breaksOf(now, changed(change)).join("\n")).toContain(expected);
  });

  test("and by nothing that is added", () => {
    const more = changed(({ api, codes, metrics, resources }) => {
      api.paths["/v1/more"] = { get: { responses: {} } };
      codes.push("MORE");
      metrics.slipway_more = { type: "gauge", labels: [] };
      resources["mores.slipway.dev"] = [];
      const { spec, status } = resources["projects.slipway.dev"][0].schema.openAPIV3Schema.properties;
      spec.properties.more = { type: "string" };
      status.properties.more = { type: "string" };
      api.paths[project].get.responses["200"].content["application/json"].schema.properties.more = {};
    });
    expect(breaksOf(now, more)).toEqual([]);
  });
});
