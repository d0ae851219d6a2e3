/** A Project's spec: the rules over its fields, and the schema with all of them. */

import { type Rule, type TransitionRule, withRules } from "../rule.ts";
import { alertsOfType } from "./alerts.ts";
import { FREE, isFreePlan, plans } from "./plan-rules.ts";
import { type ProjectSpecFields, projectSpecFields } from "./spec-fields.ts";
import {
  instanceTypes,
  isInstanceType,
  type ProjectType,
  typedFields,
  typesRequiring,
  typesWith,
  versionsOfType,
} from "./types.ts";
import { COMMAND_MAX_BYTES, celCommandShort, isCommandShort } from "./words.ts";

type SpecRule = Rule<ProjectSpecFields>;

const list = (items: readonly string[]): string => items.join(", ");
const celList = (items: readonly string[]): string => `[${items.map((item) => `'${item}'`).join(", ")}]`;
/** CEL for "the type is one of these", cheap for one. */
const typeIn = (types: readonly ProjectType[]): string =>
  types.length === 1 ? `self.type == '${types[0]}'` : `self.type in ${celList(types)}`;

/** Types that run a container of the user's own. */
const ownImageTypes: readonly ProjectType[] = typesWith("image");
const OF_INSTANCES = typeIn(instanceTypes);
const OF_OWN_IMAGE = typeIn(ownImageTypes);

/** A typed field is refused on every type that does not have it. */
const belongs: SpecRule[] = typedFields.map((field) => {
  const types = typesWith(field);
  return {
    cel: `!has(self.${field}) || ${typeIn(types)}`,
    check: (self) => self[field] === undefined || types.includes(self.type),
    message: `{${field}} does not belong to this type of project, only to: ${list(types)}`,
    fields: [field, "type"],
  };
});

/** And it is required on those that cannot do without. */
const required: SpecRule[] = typedFields.flatMap((field) => {
  const types = typesRequiring(field);
  if (types.length === 0) {
    return [];
  }
  return [
    {
      cel: `has(self.${field}) || !(${typeIn(types)})`,
      check: (self) => self[field] !== undefined || !types.includes(self.type),
      message: `{${field}} is required for projects of type ${list(types)}`,
      fields: [field, "type"],
    },
  ];
});

const images: SpecRule[] = [
  {
    cel: `!(${OF_INSTANCES}) || (has(self.image) ? 1 : 0) + (has(self.source) ? 1 : 0) + (has(self.github) ? 1 : 0) == 1`,
    check: ({ type, image, source, github }) =>
      !isInstanceType(type) || [image, source, github].filter((one) => one !== undefined).length === 1,
    message: "exactly one of {image}, {source} and {github} is required",
    fields: ["image", "source", "github", "type"],
  },
  {
    cel: "self.type != 'job' || has(self.image) != has(self.github)",
    check: ({ type, image, github }) => type !== "job" || (image !== undefined) !== (github !== undefined),
    message: "exactly one of {image} and {github} is required",
    fields: ["image", "github", "type"],
  },
  {
    cel: `!(${OF_INSTANCES}) || has(self.source) == has(self.build)`,
    check: ({ type, source, build }) =>
      !isInstanceType(type) || (source !== undefined) === (build !== undefined),
    message: "{source} and {build} must be given together",
    fields: ["build", "source", "type"],
  },
];

const exposure: SpecRule[] = [
  {
    cel: "!has(self.exposure) || self.exposure == 'public' || !has(self.subdomain)",
    check: (self) => self.exposure !== "private" || self.subdomain === undefined,
    message: "{subdomain} is not allowed when {exposure} is private",
    fields: ["subdomain", "exposure"],
  },
  {
    cel: "!has(self.exposure) || self.exposure == 'public' || !has(self.customDomains) || size(self.customDomains) == 0",
    check: (self) => self.exposure !== "private" || (self.customDomains ?? []).length === 0,
    message: "{customDomains} must be empty when {exposure} is private",
    fields: ["customDomains", "exposure"],
  },
];

const sizes: SpecRule[] = [
  {
    cel: `!has(self.storage) || !${FREE} || self.storage.capacity == 1`,
    check: (self) => self.storage === undefined || !isFreePlan(self.plan) || self.storage.capacity === 1,
    message: "{storage.capacity} must be exactly 1 on free plans",
    fields: ["storage.capacity", "plan"],
  },
  {
    cel: `!has(self.storage) || !(${OF_OWN_IMAGE}) || !self.storage.persistent || has(self.storage.dirPathToPersist)`,
    check: ({ type, storage }) =>
      !(
        ownImageTypes.includes(type) &&
        storage?.persistent === true &&
        storage.dirPathToPersist === undefined
      ),
    message: "{storage.dirPathToPersist} is required when {storage.persistent} is true",
    fields: ["storage.dirPathToPersist", "storage.persistent", "type"],
  },
  {
    cel: `!has(self.storage) || !has(self.storage.dirPathToPersist) || ${OF_OWN_IMAGE}`,
    check: ({ type, storage }) => storage?.dirPathToPersist === undefined || ownImageTypes.includes(type),
    message: `{storage.dirPathToPersist} belongs only to projects of type ${list(ownImageTypes)}`,
    fields: ["storage.dirPathToPersist", "type"],
  },
  {
    cel: "self.type != 'valkey' || !has(self.profile) || (self.profile == 'cache' ? !has(self.storage) : has(self.storage) && self.storage.persistent)",
    check: ({ type, profile, storage }) =>
      type !== "valkey" ||
      profile === undefined ||
      (profile === "cache" ? storage === undefined : storage?.persistent === true),
    message:
      "{storage} must be persistent for the profiles key_value and queue, and is not allowed for cache",
    fields: ["storage", "profile", "type"],
  },
  {
    cel: "self.type != 'postgresql' || !has(self.instances) || self.instances <= (self.plan == 'db-free' ? 1 : 3)",
    check: ({ type, instances, plan }) =>
      type !== "postgresql" || instances === undefined || instances <= (plan === "db-free" ? 1 : 3),
    message: "{instances} of a postgresql project must be 1 to 3, and 1 on db-free",
    fields: ["instances", "type", "plan"],
  },
  {
    cel: "self.type != 'mariadb' || !has(self.instances) || self.instances == 3",
    check: ({ type, instances }) => type !== "mariadb" || instances === undefined || instances === 3,
    message: "{instances} of a mariadb project must be exactly 3",
    fields: ["instances", "type"],
  },
  {
    cel: "!has(self.autoscaling) || !has(self.instances) || self.autoscaling.maxInstances >= self.instances",
    check: ({ autoscaling, instances }) =>
      autoscaling === undefined || instances === undefined || autoscaling.maxInstances >= instances,
    message: "{autoscaling.maxInstances} must be at least {instances}",
    fields: ["autoscaling.maxInstances", "instances"],
  },
  {
    cel: "self.type == 'http' || !has(self.autoscaling) || !has(self.autoscaling.requestsPerSecondTarget)",
    check: ({ type, autoscaling }) => type === "http" || autoscaling?.requestsPerSecondTarget === undefined,
    message: "{autoscaling.requestsPerSecondTarget} belongs only to projects of type http",
    fields: ["autoscaling.requestsPerSecondTarget", "type"],
  },
  {
    cel: "!has(self.networkAccess) || self.type == 'valkey' || size(self.networkAccess.ingressWhiteList) > 0",
    check: ({ type, networkAccess }) =>
      networkAccess === undefined || type === "valkey" || networkAccess.ingressWhiteList.length > 0,
    message: "{networkAccess.ingressWhiteList} must hold at least one range; 0.0.0.0/0 admits everybody",
    fields: ["networkAccess.ingressWhiteList", "type"],
  },
];

const commands: SpecRule[] = [
  {
    cel: "!has(self.command) || (!has(self.source) && !has(self.github))",
    check: ({ command, source, github }) =>
      command === undefined || (source === undefined && github === undefined),
    message: "{command} is not of projects from Git: they have the start command of their build",
    fields: ["command", "source", "github"],
  },
  {
    cel: `!has(self.command) || ${celCommandShort("command")}`,
    check: ({ command = [] }) => isCommandShort(command),
    message: `{command} must be at most ${COMMAND_MAX_BYTES} bytes of UTF-8 in all`,
    fields: ["command"],
  },
];

const preDeploy: SpecRule[] = [
  {
    cel: "!has(self.preDeployTimeoutSeconds) || has(self.preDeployCommand)",
    check: ({ preDeployCommand, preDeployTimeoutSeconds }) =>
      preDeployTimeoutSeconds === undefined || preDeployCommand !== undefined,
    message: "{preDeployCommand} is required with {preDeployTimeoutSeconds}",
    fields: ["preDeployCommand", "preDeployTimeoutSeconds"],
  },
];

const versions: SpecRule[] = Object.entries(versionsOfType).map(([type, accepted]) => ({
  cel: `self.type != '${type}' || !has(self.version) || self.version in ${celList(accepted)}`,
  check: (self) =>
    self.type !== type ||
    self.version === undefined ||
    (accepted as readonly string[]).includes(self.version),
  message: `{version} of a ${type} project must be one of: ${list(accepted)}`,
  fields: ["version", "type"],
}));

/** Every rule of the specification's "Create a project" tables that spans fields. */
export const projectRules: readonly SpecRule[] = [
  ...belongs,
  ...required,
  ...plans,
  ...images,
  ...exposure,
  ...sizes,
  ...commands,
  ...preDeploy,
  ...versions,
  ...alertsOfType,
];

const immutable = (field: "type" | "profile" | "version"): TransitionRule<ProjectSpecFields> => ({
  cel:
    field === "type"
      ? "self.type == oldSelf.type"
      : `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  check: (self, old) => self[field] === old[field],
  message: `{${field}} cannot be changed`,
  fields: [field],
});

/** CEL for the backup that a new database begins with; empty without one. */
const RESTORE_FROM = (self: string): string =>
  `has(${self}.database) && has(${self}.database.restoreFrom) ? ${self}.database.restoreFrom.backup : ''`;

/** What cannot change in the life of a project. Storage has rules of its own beside its schema. */
export const projectTransitions: readonly TransitionRule<ProjectSpecFields>[] = [
  immutable("type"),
  immutable("profile"),
  immutable("version"),
  {
    cel: `${OF_OWN_IMAGE} || has(self.storage) == has(oldSelf.storage)`,
    check: (self, old) =>
      ownImageTypes.includes(self.type) || (self.storage === undefined) === (old.storage === undefined),
    message: "{storage} of a database cannot be added or removed",
    fields: ["storage"],
  },
  {
    // One server keeps for itself what several keep in Keepers beside them; it does not get from the one to the other.
    cel: "self.type != 'clickhouse' || ((has(self.instances) ? self.instances : 1) > 1) == ((has(oldSelf.instances) ? oldSelf.instances : 1) > 1)",
    check: (self, old) =>
      self.type !== "clickhouse" || (self.instances ?? 1) > 1 === (old.instances ?? 1) > 1,
    message: "{instances} of a clickhouse project cannot change between one and several",
    fields: ["instances"],
  },
  {
    // A database that holds something already would be emptied.
    cel: `(${RESTORE_FROM("self")}) == (${RESTORE_FROM("oldSelf")})`,
    check: (self, old) => self.database?.restoreFrom?.backup === old.database?.restoreFrom?.backup,
    message: "{database.restoreFrom} cannot be changed",
    fields: ["database.restoreFrom"],
  },
];

/** A Project's spec with every rule: what the CRD and zod accept. */
export const projectSpec = withRules(projectSpecFields, projectRules, projectTransitions);
export type ProjectSpec = ProjectSpecFields;
