/** The conditions of a Build, from its status. Pure. */

import type { ConditionSet } from "@slipway/controller-runtime";
import type { BuildCondition, BuildConditionCatalog, BuildReason, BuildStatus } from "@slipway/crds";

type Finding = { status: "True" | "False" | "Unknown"; reason: BuildReason; message?: string };

/** Sets `Succeeded` and `Published`; both are final once the build has ended. */
export function setBuildConditions(
  conditions: Pick<ConditionSet<BuildConditionCatalog>, "set">,
  status: Pick<BuildStatus, "phase" | "image" | "errorCode" | "errorMessage">,
): void {
  const set = (type: BuildCondition, finding: Finding) => conditions.set({ type, ...finding });
  set("Succeeded", succeeded(status));
  set("Published", published(status));
}

type Seen = Parameters<typeof setBuildConditions>[1];

function succeeded({ phase, image, errorMessage }: Seen): Finding {
  if (image) {
    return { status: "True", reason: "Pushed" };
  }
  return ended(phase, errorMessage) ?? running(phase);
}

function published({ phase, image, errorCode, errorMessage }: Seen): Finding {
  if (phase === "success") {
    return { status: "True", reason: "Published" };
  }
  if (phase === "failed" && image) {
    const reason = errorCode === "PROJECT_PUBLISH_TIMEOUT" ? "PublishTimeout" : "PublishFailed";
    return { status: "False", reason, message: errorMessage };
  }
  return ended(phase, errorMessage) ?? (image ? { status: "Unknown", reason: "Pushed" } : running(phase));
}

function ended(phase: Seen["phase"], message: string | undefined): Finding | undefined {
  if (phase === "failed") {
    return { status: "False", reason: "Failed", message };
  }
  return phase === "superseded" ? { status: "False", reason: "Superseded", message } : undefined;
}

const running = (phase: Seen["phase"]): Finding => ({
  status: "Unknown",
  reason: phase === "building" ? "Building" : "Pending",
});
