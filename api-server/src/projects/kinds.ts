import { GROUP, plurals, VERSION } from "@slipway/crds";
import { customResource } from "@slipway/kube";

/** Where the custom resources are served. */
export const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");
export const domainClaimResource = customResource(GROUP, VERSION, plurals.DomainClaim, "DomainClaim", false);
