import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TestApiserver } from "../../hack/cluster/apiserver.ts";
import { acquireApiserver } from "../../test/kit/clusters/shared-apiserver.ts";
import { TestClient } from "../../test/kit/crds/apiserver.ts";
import { almostCidr, almostCron, wellFormedSpec } from "../../test/kit/crds/arbitraries.ts";
import type { FixtureResource } from "../../test/kit/crds/fixtures.ts";
import { zodFailures } from "../../test/kit/crds/layers.ts";
import { isCron } from "./cron.ts";
import { type Kind, kinds } from "./kinds.ts";

/** Random Projects before zod and a real kube-apiserver: both must break exactly the same rules. */

const project = kinds.find(({ kind }) => kind === "Project") as Kind;
let api: TestApiserver;
let client: TestClient;

beforeAll(async () => {
  api = await acquireApiserver();
  client = new TestClient(api.kubeconfig);
});

afterAll(async () => {
  client?.close();
  await api?.stop();
});

const resource = (spec: Record<string, unknown>): FixtureResource => ({
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Project",
  metadata: { name: "random" },
  spec,
});

/** `path: message` of every failure, as zod words them. */
async function apiserverFailures(one: FixtureResource): Promise<string[]> {
  const { status, body } = await client.create(project, one, true);
  if (status === 201) {
    return [];
  }
  const causes =
    (body.details as { causes?: { field: string; message: string }[] } | undefined)?.causes ?? [];
  if (causes.length === 0) {
    throw new Error(`status ${status}: ${body.message}`);
  }
  return causes.map(
    ({ field, message }) => `${field}: ${message.replace(/^Invalid value: ("[^"]*"|[^:]+): /, "")}`,
  );
}

async function expectAgreement(one: FixtureResource): Promise<void> {
  expect((await apiserverFailures(one)).sort()).toEqual(zodFailures(project, one).sort());
}

it("breaks the same rules for 400 random specs", async () => {
  await fc.assert(
    fc.asyncProperty(wellFormedSpec, (spec) => expectAgreement(resource(spec))),
    { numRuns: 400 },
  );
});

const minimal = {
  type: "http",
  name: "abcdef",
  plan: "basic",
  paymentMode: "hourly",
  exposure: "private",
  image: { url: "nginx:1.29", isPublic: true },
  port: 80,
  instances: 1,
  storage: { persistent: false, capacity: 1 },
};

it("accepts the same CIDRs", async () => {
  await fc.assert(
    fc.asyncProperty(almostCidr, (cidr) =>
      expectAgreement(resource({ ...minimal, networkAccess: { ingressWhiteList: [{ cidr }] } })),
    ),
    { numRuns: 500 },
  );
});

it("accepts the same schedules", async () => {
  const { type: _, exposure: _e, port: _p, instances: _i, ...rest } = minimal;
  await fc.assert(
    fc.asyncProperty(almostCron, (cron) =>
      expectAgreement(
        resource({ ...rest, type: "job", plan: "job-basic", paymentMode: "per_minute", job: { cron } }),
      ),
    ),
    { numRuns: 500 },
  );
});

it("accepts no schedule that a CronJob refuses", async () => {
  const template = {
    spec: {
      template: { spec: { restartPolicy: "Never", containers: [{ name: "app", image: "nginx:1.29" }] } },
    },
  };
  const refusals: string[] = [];
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(almostCron.filter(isCron), async (schedule) => {
      const { status, body } = await client.call(
        "POST",
        "/apis/batch/v1/namespaces/default/cronjobs?dryRun=All",
        {
          apiVersion: "batch/v1",
          kind: "CronJob",
          metadata: { name: "random" },
          spec: { schedule, jobTemplate: template },
        },
      );
      accepted += 1;
      if (status !== 201) {
        refusals.push(`${schedule}: ${body.message}`);
      }
    }),
    { numRuns: 300 },
  );
  expect(refusals).toEqual([]);
  expect(accepted).toBe(300);
});
