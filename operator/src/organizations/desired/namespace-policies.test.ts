import { fileURLToPath } from "node:url";
import { organizationLimits } from "@slipway/crds";
import { expect, test } from "vitest";
import { goldenTests } from "../../../../test/kit/operator/golden.ts";
import { desiredNamespace } from "./namespace.ts";
import { desiredNamespacePolicies, type NamespacePolicySettings } from "./namespace-policies.ts";

const limits = organizationLimits.parse({});

function objectsOf(input: unknown) {
  const { organization, settings } = input as { organization: string; settings: NamespacePolicySettings };
  const namespace = `slipway-org-${organization}`;
  return [
    desiredNamespace(organization, namespace, true),
    ...desiredNamespacePolicies(organization, namespace, { ...settings, limits }),
  ];
}

goldenTests(fileURLToPath(new URL("testdata", import.meta.url)), objectsOf);

test("no egress rule ever has no peers, which would open everything", () => {
  const settings = {
    dnsNamespace: "kube-system",
    egressDeniedCidrs: ["0.0.0.0/0", "::/0"],
    systemNamespace: "slipway-system",
    limits,
  };
  for (const { spec } of desiredNamespacePolicies("alpha", "slipway-org-alpha", settings)) {
    for (const { to } of (spec as { egress?: { to: unknown[] }[] } | undefined)?.egress ?? []) {
      expect(to.length).toBeGreaterThan(0);
    }
  }
});

test("a namespace is marked as provisioned only when it is", () => {
  expect(desiredNamespace("alpha", "slipway-org-alpha", false).metadata.annotations).toBeUndefined();
  expect(desiredNamespace("alpha", "slipway-org-alpha", true).metadata.annotations).toEqual({
    "slipway.dev/guarded": "true",
  });
});
