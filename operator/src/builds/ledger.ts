/** Triggers, retired images and history of builds in the ledger. */

import {
  claimBuildTrigger,
  findBuild,
  findBuildTriggers,
  forgetRetiredImage,
  type Ledger,
  listBuilds,
  listRetiredImages,
  recordBuildTriggers,
} from "@slipway/ledger";
import type { BuildOptions } from "./controller.ts";

export function ledgerBuilds(
  ledger: Ledger,
): Required<Pick<BuildOptions, "triggers" | "hasBuilds" | "retired">> {
  return {
    triggers: {
      known: (project, triggers) => findBuildTriggers(ledger, project, triggers),
      record: (triggers) => recordBuildTriggers(ledger, triggers),
      claim: (trigger, buildId) => claimBuildTrigger(ledger, trigger, buildId),
      hasBuild: async ({ metadata: { name, uid = "" } }, organizationId, id) =>
        (await findBuild(ledger, { organizationId, projectId: name, projectUid: uid, id })) !== undefined,
    },
    hasBuilds: async ({ metadata: { name, uid = "" } }, organizationId) => {
      const { total } = await listBuilds(ledger, {
        organizationId,
        projectId: name,
        projectUid: uid,
        offset: 0,
        limit: 1,
      });
      return total > 0;
    },
    retired: {
      list: () => listRetiredImages(ledger),
      forget: (image) => forgetRetiredImage(ledger, image),
    },
  };
}
