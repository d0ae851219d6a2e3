/** The namespace of an organization. */

import type { DesiredObject } from "../../desired.ts";
import { organizationLabels } from "./namespace-policies.ts";

/** Set once every policy is in place and the quota is counted; the API creates nothing in a namespace without it. */
export const PROVISIONED_ANNOTATION = "slipway.dev/guarded";

/**
 * @param provisioned whether every policy is in place: an apply without the annotation removes it, so pass true
 *   whenever it was true before.
 */
export function desiredNamespace(organizationId: string, name: string, provisioned: boolean): DesiredObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name,
      labels: {
        ...organizationLabels(organizationId),
        "slipway.dev/role": "organization",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "restricted",
      },
      ...(provisioned ? { annotations: { [PROVISIONED_ANNOTATION]: "true" } } : {}),
    },
  };
}
