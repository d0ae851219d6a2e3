/** When other values of shared variables are taken over for good. */

import type { ProjectStatus } from "@slipway/crds";

type Recorded = Pick<ProjectStatus, "sharedVariables" | "deployments">;

/**
 * Resolves values and applies what is made from them. Where that fails before a deployment has begun, which would count as the rollout, they
 * are not recorded: what is recorded is not admitted again, so all of an organization's projects would be rolled once applying succeeds.
 * @param status is written by both
 */
export async function takeOver<T>(status: Recorded, resolveAndApply: () => Promise<T>): Promise<T> {
  const { sharedVariables, deployments: [newest] = [] } = status;
  try {
    return await resolveAndApply();
  } catch (error) {
    if (status.deployments?.[0]?.id === newest?.id) {
      status.sharedVariables = sharedVariables;
    }
    throw error;
  }
}
