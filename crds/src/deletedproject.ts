import { z } from "zod";
import { conditions } from "./conditions.ts";
import { matching, objectName, observedGeneration, planId, text, timestamp } from "./fields.ts";
import type { Resource } from "./metadata.ts";
import type { Project } from "./project/index.ts";
import { projectTypes } from "./project/types.ts";
import { mapOf, type TransitionRule, withRules } from "./rule.ts";

/** Condition types of a DeletedProject. */
export const deletedProjectConditions = {
  /** Positive, summary: the project can be undeleted. */
  Ready: "Ready",
} as const;
export type DeletedProjectCondition = keyof typeof deletedProjectConditions;

/** Reasons of a DeletedProject's conditions. */
export const deletedProjectReasons = {
  /** Its volumes and Secrets are retained. */
  Retained: "Retained",
  /** The project is being created again. */
  Undeleting: "Undeleting",
  /** Another project has its id by now. */
  NameTaken: "NameTaken",
  /** A volume does not exist any more, or is somebody else's. */
  VolumeMissing: "VolumeMissing",
  /** Its volumes and Secrets are being deleted, or belong to the project again. */
  Releasing: "Releasing",
} as const;
export type DeletedProjectReason = keyof typeof deletedProjectReasons;
/** What conditions of a DeletedProject may say. */
export interface DeletedProjectConditionCatalog {
  type: DeletedProjectCondition;
  reason: DeletedProjectReason;
}

const uid = (about: string) => matching(/^[a-zA-Z0-9-]+$/, "must be the uid of an object", 64, about).min(1);

const volume = z
  .strictObject({
    claimName: objectName("Claim of the project that was bound to the volume, and is again."),
    claimUid: uid("Uid of the claim that was deleted."),
    volumeName: objectName("PersistentVolume that is retained."),
    capacity: text(1, 32, "Its capacity, as a quantity."),
  })
  .describe("A volume of the project.");

const fields = z
  .strictObject({
    projectRef: z
      .strictObject({ name: objectName("Id of the project."), uid: uid("Its uid.") })
      .describe("The project that was deleted."),
    displayName: text(1, 64, "Name that people gave it."),
    type: z.enum(projectTypes).describe("Its type."),
    plan: planId,
    deletedAt: timestamp("When it was deleted."),
    expiresAt: timestamp("When its volumes and Secrets are deleted for good."),
    volumes: mapOf(z.array(volume).max(100), "claimName").describe("Volumes that are retained."),
    undeleteRequestedAt: timestamp("Set to have the project created again as it was.").optional(),
  })
  .describe(
    "A project that was deleted while its plan retained the volumes of deleted projects. Deleting it deletes them.",
  );
export type DeletedProjectSpec = z.output<typeof fields>;

const fixed = ["projectRef", "displayName", "type", "plan", "deletedAt", "volumes"] as const;

const transitions: TransitionRule<DeletedProjectSpec>[] = fixed.map((field) => ({
  cel: `self.${field} == oldSelf.${field}`,
  check: (self, old) => JSON.stringify(self[field]) === JSON.stringify(old[field]),
  message: `{${field}} cannot be changed`,
  fields: [field],
}));

export const deletedProjectSpec = withRules(fields, [], transitions);

export const deletedProjectStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation that this is about."),
    conditions: conditions.optional(),
  })
  .describe("Whether the project can be undeleted.");
export type DeletedProjectStatus = z.output<typeof deletedProjectStatus>;

/** A project that was deleted, and can be undeleted until it expires. */
export type DeletedProject = Resource<"DeletedProject", DeletedProjectSpec, DeletedProjectStatus>;

/** Key of the project as it was, in the Secret that has the record's name. */
export const DELETED_PROJECT_STATE = "state.json";

/** The project as it was deleted. @throws SyntaxError for a Secret that has none */
export function deletedProjectState<State extends { project: Project }>(
  data: Readonly<Record<string, string>> | undefined,
): State {
  return JSON.parse(Buffer.from(data?.[DELETED_PROJECT_STATE] ?? "", "base64").toString("utf8")) as State;
}

/** Most of them in an organization: of one more, the oldest expires. */
export const DELETED_PROJECTS_KEPT = 50;

/** Name of the record of a deleted project: another project of the same id has another uid. */
export function deletedProjectName(projectId: string, uid: string): string {
  return `${projectId}-${uid.slice(0, 8)}`;
}

/** Whether a project can be undeleted: its record is neither being deleted nor expired. */
export function isRestorable({ metadata, spec }: DeletedProject, now: Date): boolean {
  return metadata.deletionTimestamp === undefined && Date.parse(spec.expiresAt) > now.getTime();
}
