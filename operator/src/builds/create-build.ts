/** Creates the Builds that the operator itself requests. */

import { isAlreadyExists, type KubeClient } from "@slipway/controller-runtime";
import { type Build, type BuildRequest, buildObject, fieldManagers, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { buildResource } from "../resources.ts";

/** Creates a Build; its reconciler records it in the ledger. @returns false when it exists already */
export async function createBuild(
  { client, clock }: { client: KubeClient; clock: Clock },
  [project, id, request]: readonly [project: Project, id: string, request: BuildRequest],
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.create<Build>(buildResource, buildObject(project, id, request, clock.now()), {
      fieldManager: fieldManagers.build,
      signal,
    });
    return true;
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
    return false;
  }
}
