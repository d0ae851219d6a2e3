/** What the names of resources must be. */
import { GIT_CONNECTION_ID } from "./gitconnection.ts";
import { LOG_DRAIN_ID } from "./logdrain.ts";
import { PROJECT_ID } from "./names.ts";
import type { Rule } from "./rule.ts";
import { VARIABLE_GROUP_ID } from "./variablegroup.ts";

/** What rules at the root of a resource see: the CEL environment shows no more of the metadata than this. */
export interface Root {
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

/** Names of children derive from such a name, or other resources name it. */
const idOf = (pattern: RegExp): Rule<Root> => ({
  cel: `self.metadata.name.matches('${pattern.source}')`,
  check: ({ metadata }) => pattern.test(metadata.name),
  message:
    "{metadata.name} must be at most 40 lowercase letters, digits and hyphens, beginning with a letter",
  fields: [],
});

export const projectId = idOf(PROJECT_ID);
export const connectionId = idOf(GIT_CONNECTION_ID);
export const groupId = idOf(VARIABLE_GROUP_ID);
export const drainId = idOf(LOG_DRAIN_ID);

export const claimName: Rule<Root> = {
  cel: "self.metadata.name == self.spec.hostname",
  check: ({ metadata, spec }) => metadata.name === (spec as { hostname: string }).hostname,
  message: "{metadata.name} must be the hostname",
  fields: [],
};

export const backupNameRule: Rule<Root> = {
  cel: "size(self.metadata.name) <= 55",
  check: ({ metadata }) => metadata.name.length <= 55,
  message: "{metadata.name} must be at most 55 characters long",
  fields: [],
};
