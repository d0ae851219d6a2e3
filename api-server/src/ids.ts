import { randomInt } from "node:crypto";
import {
  newOrganizationId as organizationId,
  newProjectId as projectId,
  type RandomInt,
} from "@slipway/crds";

const random: RandomInt = (below) => randomInt(below);

export const newProjectId = (): string => projectId(random);
export const newOrganizationId = (): string => organizationId(random);
/** `u` and 98 bits of chance, like the ids of projects. */
export const newUserId = (): string => `u${projectId(random).slice(1)}`;
