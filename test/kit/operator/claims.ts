import type { DomainClaim } from "@slipway/crds";

/** A custom domain's claim by the project p1 of the organization alpha; override what a test is about. */
export function exampleClaim(
  hostname = "shop.example.com",
  {
    spec,
    ...rest
  }: Partial<Pick<DomainClaim, "metadata" | "status">> & { spec?: Partial<DomainClaim["spec"]> } = {},
): DomainClaim {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "DomainClaim",
    metadata: { name: hostname, uid: "claim-uid", creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: {
      hostname,
      organization: "alpha",
      kind: "custom",
      projectRef: { namespace: "slipway-org-alpha", name: "p1", uid: "project-uid" },
      ...spec,
    },
    ...rest,
  };
}
