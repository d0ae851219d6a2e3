/** The types of project. */
export const projectTypes = [
  "http",
  "postgresql",
  "mariadb",
  "clickhouse",
  "valkey",
  "job",
  "worker",
] as const;
export type ProjectType = (typeof projectTypes)[number];

/** Types whose instances run all the time from an image of the user's own, on an HTTP plan. */
export const instanceTypes = ["http", "worker"] as const satisfies readonly ProjectType[];

/** Whether instances of a project of this type run all the time from an image of the user's own. */
export function isInstanceType(type: ProjectType): type is (typeof instanceTypes)[number] {
  return (instanceTypes as readonly ProjectType[]).includes(type);
}

/** Which fields a type has: `required` must be there, `optional` may, every other typed field must not. */
interface TypeFields {
  readonly required: readonly TypedField[];
  readonly optional: readonly TypedField[];
}

/** Spec fields that belong to some types only. The others (`name`, `plan`, …) belong to all. */
export const typedFields = [
  "exposure",
  "subdomain",
  "customDomains",
  "image",
  "source",
  "build",
  "github",
  "port",
  "instances",
  "storage",
  "envsFrom",
  "variableGroups",
  "networkAccess",
  "healthcheck",
  "terminationGracePeriodSeconds",
  "sleepAfterSeconds",
  "autoscaling",
  "command",
  "readiness",
  "preDeployCommand",
  "preDeployTimeoutSeconds",
  "version",
  "profile",
  "database",
  "job",
] as const;
export type TypedField = (typeof typedFields)[number];

const database: TypeFields = {
  required: ["version", "instances", "storage", "networkAccess"],
  optional: ["envsFrom", "database"],
};

/** The tables of the specification's "Create a project", as data. The rules and the `/v1` bodies derive from it. */
export const fieldsOfType: Readonly<Record<ProjectType, TypeFields>> = {
  http: {
    required: ["exposure", "port", "instances", "storage", "networkAccess"],
    optional: [
      "image",
      "source",
      "build",
      "github",
      "envsFrom",
      "variableGroups",
      "subdomain",
      "customDomains",
      "healthcheck",
      "terminationGracePeriodSeconds",
      "sleepAfterSeconds",
      "autoscaling",
      "command",
      "preDeployCommand",
      "preDeployTimeoutSeconds",
    ],
  },
  postgresql: database,
  mariadb: database,
  clickhouse: database,
  valkey: {
    required: ["profile", "version"],
    optional: ["storage", "networkAccess", "envsFrom", "database"],
  },
  worker: {
    required: ["instances", "storage"],
    optional: [
      "image",
      "source",
      "build",
      "github",
      "envsFrom",
      "variableGroups",
      "terminationGracePeriodSeconds",
      "autoscaling",
      "command",
      "readiness",
      "preDeployCommand",
      "preDeployTimeoutSeconds",
    ],
  },
  job: { required: ["job"], optional: ["image", "github", "storage", "envsFrom", "variableGroups"] },
};

/** The types that have a field, in the order of `projectTypes`. */
export function typesWith(field: TypedField): ProjectType[] {
  return projectTypes.filter((type) => {
    const { required, optional } = fieldsOfType[type];
    return required.includes(field) || optional.includes(field);
  });
}

/** The types that cannot do without a field. */
export function typesRequiring(field: TypedField): ProjectType[] {
  return projectTypes.filter((type) => fieldsOfType[type].required.includes(field));
}

/** Engine versions that each type accepts. */
export const versionsOfType = {
  postgresql: ["15", "16", "17", "18"],
  mariadb: ["10", "11"],
  clickhouse: ["26.8.6.5"],
  valkey: ["9.1.1"],
} as const satisfies Partial<Record<ProjectType, readonly string[]>>;
