import { randomInt } from "node:crypto";
import {
  newEmailRecipientId as emailRecipientId,
  newGitConnectionId as gitConnectionId,
  jobRunName,
  newLogDrainId as logDrainId,
  newOrganizationId as organizationId,
  newProjectId as projectId,
  type RandomInt,
  newVariableGroupId as variableGroupId,
  newWebhookId as webhookId,
} from "@slipway/crds";

const random: RandomInt = (below) => randomInt(below);

export const newProjectId = (): string => projectId(random);
export const newGitConnectionId = (): string => gitConnectionId(random);
export const newVariableGroupId = (): string => variableGroupId(random);
export const newWebhookId = (): string => webhookId(random);
export const newEmailRecipientId = (): string => emailRecipientId(random);
export const newLogDrainId = (): string => logDrainId(random);
export const newOrganizationId = (): string => organizationId(random);
/** `u` and 98 bits of chance, like the ids of projects. */
export const newUserId = (): string => `u${projectId(random).slice(1)}`;

/** Id of a run that is requested now: the minute, and 10 random characters. */
export const newManualRunId = (project: string, at: Date): string =>
  jobRunName(project, at, projectId(random).slice(1, 11));
