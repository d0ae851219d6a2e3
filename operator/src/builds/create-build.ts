/** Builds that the operator itself asks for. */

import { isAlreadyExists, type KubeClient } from "@slipway/controller-runtime";
import { type Build, type BuildRequest, buildObject, fieldManagers, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { buildResource } from "../resources.ts";

/** Asks for a build; the build's reconciler tells the ledger of it. @returns false when it was asked for before */
export async function askForBuild(
  { client, clock }: { client: KubeClient; clock: Clock },
  [project, id, asked]: readonly [project: Project, id: string, asked: BuildRequest],
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.create<Build>(buildResource, buildObject(project, id, asked, clock.now()), {
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
