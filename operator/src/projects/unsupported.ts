/** Projects of a type that nobody here carries out yet: refused, and let go. */

import { type KubeClient, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { refuse } from "./accept.ts";
import { LOOK_AGAIN_MS, runDeletionStep } from "./deletion.ts";
import type { ProjectContext, ProjectKind } from "./kind.ts";

/** What may have been made for such a project, by the API. */
const SECRETS = {
  delete: [resources.secrets],
  gone: [],
  waiting: { reason: "DeletingChildren", message: "The Secrets are being removed." },
} as const;

export function unsupportedKind(client: KubeClient): ProjectKind {
  return {
    observeRollout: async () => {},
    validate: ({ spec }: Project) => {
      throw refuse("TypeNotSupported", `Projects of type ${spec.type} are not supported yet.`);
    },
    apply: async () => undefined,
    observe: async () => ({}),
    holdRejectedSpec: async () => undefined,
    finalize: async (project: Project, { signal }: ProjectContext) => {
      const waiting = await runDeletionStep(SECRETS, project, client, signal);
      return waiting && { ...waiting, retryAfterMs: LOOK_AGAIN_MS };
    },
  };
}
