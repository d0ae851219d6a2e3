/** Where Slipway's own kinds are served. */

import { GROUP, plurals, VERSION } from "@slipway/crds";
import { customResource } from "@slipway/kube";

export const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");
export const domainClaimResource = customResource(GROUP, VERSION, plurals.DomainClaim, "DomainClaim", false);
