import { KubeClient } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { claimHostnames, readClaim } from "./claims.ts";

let apiserver: FakeApiserver;
let kube: KubeClient;

beforeAll(async () => {
  apiserver = await FakeApiserver.start();
  kube = KubeClient.forUrl(apiserver.url);
});
afterAll(async () => {
  await kube.close();
  await apiserver.stop();
});

const projectOf = (organization: string): Project => ({
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Project",
  metadata: { name: "shop", namespace: organizationNamespace(organization), uid: `uid-${organization}` },
  spec: { ...exampleSpec, name: "shop" },
});

test("all organizations that concurrently request another's domain are named on its claim", async () => {
  const hostname = "shop.example.com";
  const claim = (organization: string) =>
    claimHostnames(kube, projectOf(organization), [{ hostname, kind: "custom" }]);
  await claim("owner");
  const others = ["acme", "wayne", "stark", "umbrella"];
  const refusals = await Promise.allSettled(others.map(claim));
  expect(refusals.map(({ status }) => status)).toEqual(others.map(() => "rejected"));
  expect((await readClaim(kube, hostname))?.spec.contenders?.toSorted()).toEqual(others.toSorted());
});
