import fc from "fast-check";
import {
  fieldsOfType,
  type ProjectType,
  projectTypes,
  type TypedField,
  typedFields,
} from "../../../crds/src/project/types.ts";

/** Random specs whose every field is well-formed, so that only the rules that span fields can refuse them. */

const plans = [
  "free",
  "basic",
  "db-free",
  "db-basic",
  "analytics-basic",
  "cache-free",
  "cache-basic",
  "queue-basic",
  "job-basic",
];

const range = fc.constantFrom({ cidr: "0.0.0.0/0" }, { cidr: "2001:db8::/32", description: "office" });
const source = {
  connectionId: fc.constant("c1"),
  repositoryId: fc.constant("r1"),
  branch: fc.constant("main"),
  autoDeploy: fc.boolean(),
};
const versionDeploy = fc.record(
  { enabled: fc.boolean(), event: fc.constantFrom("tag", "release"), tagPattern: fc.constant("v*") },
  { requiredKeys: ["enabled"] },
);

const values: Record<TypedField, fc.Arbitrary<unknown>> = {
  exposure: fc.constantFrom("public", "private"),
  subdomain: fc.constant("my-shop"),
  customDomains: fc.constantFrom([], ["shop.example.com"]),
  image: fc.record(
    { url: fc.constant("nginx:1.29"), isPublic: fc.boolean(), pullSecretRef: fc.constant({ name: "login" }) },
    { requiredKeys: ["url", "isPublic"] },
  ),
  source: fc.record(
    { ...source, versionDeploy },
    { requiredKeys: ["connectionId", "repositoryId", "branch", "autoDeploy"] },
  ),
  build: fc.constantFrom({}, { runtime: "node" }),
  github: fc.record(
    {
      repositoryOwner: fc.constant("o"),
      repositoryName: fc.constant("r"),
      branch: fc.constant("b"),
      autoDeploy: fc.boolean(),
      versionDeploy,
    },
    { requiredKeys: ["repositoryOwner", "repositoryName", "branch", "autoDeploy"] },
  ),
  database: fc.constantFrom({}, { backup: { schedule: "0 3 * * *", retentionDays: 7 } }),
  port: fc.constant(8080),
  instances: fc.integer({ min: 1, max: 5 }),
  storage: fc.record(
    {
      persistent: fc.boolean(),
      capacity: fc.integer({ min: 1, max: 3 }),
      dirPathToPersist: fc.constant("/data"),
    },
    { requiredKeys: ["persistent", "capacity"] },
  ),
  envsFrom: fc.constantFrom([], [{ name: "env" }]),
  variableGroups: fc.constantFrom([], ["shared"]),
  networkAccess: fc.record(
    {
      ingressWhiteList: fc.array(range, { maxLength: 2 }),
      ingressBlackList: fc.array(range, { maxLength: 2 }),
    },
    { requiredKeys: ["ingressWhiteList"] },
  ),
  healthcheck: fc.record(
    {
      enabled: fc.boolean(),
      path: fc.constant("/healthz"),
      livenessPath: fc.constant("/livez"),
      startupTimeoutSeconds: fc.constantFrom(10, 3_600),
    },
    { requiredKeys: ["enabled"] },
  ),
  terminationGracePeriodSeconds: fc.constantFrom(1, 300),
  sleepAfterSeconds: fc.constantFrom(10, 604_800),
  command: fc.constantFrom(["node", "worker.js"], Array(5).fill("a".repeat(1_000))),
  readiness: fc.constant({ command: ["cat", "/tmp/ready"] }),
  preDeployCommand: fc.constant(["node", "migrate.js"]),
  preDeployTimeoutSeconds: fc.constantFrom(10, 3_600),
  autoscaling: fc.record(
    {
      enabled: fc.boolean(),
      maxInstances: fc.integer({ min: 1, max: 5 }),
      requestsPerSecondTarget: fc.constantFrom(1, 10_000),
    },
    { requiredKeys: ["enabled", "maxInstances"] },
  ),
  version: fc.constantFrom("15", "17", "10", "11", "26.8.6.5", "9.1.1", "1"),
  profile: fc.constantFrom("key_value", "cache", "queue"),
  job: fc.constant({ cron: "*/5 * * * *" }),
};

/** Fields of the type are likely, those of other types rare. */
function presence(type: ProjectType, field: TypedField): fc.Arbitrary<boolean> {
  const { required, optional } = fieldsOfType[type];
  const chance = required.includes(field) ? 12 : optional.includes(field) ? 5 : 1;
  return fc.integer({ min: 0, max: 13 }).map((draw) => draw < chance);
}

/** A spec as above. */
export const wellFormedSpec: fc.Arbitrary<Record<string, unknown>> = fc
  .constantFrom(...projectTypes)
  .chain((type) =>
    fc.record({
      common: fc.record({
        type: fc.constant(type),
        name: fc.constant("my-shop"),
        plan: fc.constantFrom(...plans),
        paymentMode: fc.constantFrom("hourly", "hourly", "monthly", "per_minute"),
      }),
      fields: fc.tuple(...typedFields.map((field) => fc.tuple(presence(type, field), values[field]))),
    }),
  )
  .map(({ common, fields }) => ({
    ...common,
    ...Object.fromEntries(
      typedFields.flatMap((field, i) => (fields[i]?.[0] ? [[field, fields[i]?.[1]]] : [])),
    ),
  }));

/**
 * Specs of which some fields are random: most are valid where the given ones are.
 * @param specs of projects
 */
export function variationsOf(
  specs: readonly Record<string, unknown>[],
): fc.Arbitrary<Record<string, unknown>> {
  return fc.constantFrom(...specs).chain((spec) => {
    const { optional } = fieldsOfType[spec.type as ProjectType];
    const fields = fc.subarray([...optional]);
    return fields
      .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, values[name]]))))
      .map((random) => ({ ...spec, ...random }));
  });
}

const octet = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 255 }).map(String) },
  fc.constantFrom("256", "01", "", "-1", "1e1"),
);
const group = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((n) => n.toString(16)) },
  fc.constantFrom("", "0000", "ffff", "FFFF", "12345", "g"),
);
const ipv4 = fc.array(octet, { minLength: 3, maxLength: 5 }).map((parts) => parts.join("."));
const ipv4Right = fc
  .array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 })
  .map((parts) => parts.join("."));
const ipv6 = fc
  .tuple(
    fc.array(group, { maxLength: 8 }),
    fc.constantFrom("::", ":", ""),
    fc.array(group, { maxLength: 8 }),
    fc.constantFrom("", "", ":10.0.0.1"),
  )
  .map(([head, middle, tail, end]) => `${head.join(":")}${middle}${tail.join(":")}${end}`);
const prefix = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 140 }).map((n) => `/${n}`) },
  fc.constantFrom("", "/", "/08", "/+8", "/8/8", "/ 8"),
);

/** Text with the characters of a CIDR, which often is one. */
export const almostCidr: fc.Arbitrary<string> = fc
  .tuple(fc.oneof(ipv4, ipv4Right, ipv6, ipv6), prefix)
  .map((parts) => parts.join(""))
  .filter((text) => text.length > 0 && text.length <= 43);

const number = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 62 }).map(String) },
  fc.constantFrom("00", "07", "MON", "sun", "Dec", "L", "?"),
);
const item = fc
  .tuple(
    fc.oneof(
      fc.constant("*"),
      number,
      fc.tuple(number, number).map((pair) => pair.join("-")),
    ),
    fc.constantFrom("", "", "", "/5", "/0", "/60"),
  )
  .map((parts) => parts.join(""));
const cronField = fc.oneof(
  { weight: 3, arbitrary: fc.constant("*") },
  fc.array(item, { minLength: 1, maxLength: 2 }).map((items) => items.join(",")),
);

/** Text with the characters of a schedule, which often is one. */
export const almostCron: fc.Arbitrary<string> = fc
  .tuple(
    fc
      .oneof({ weight: 9, arbitrary: fc.constant(5) }, fc.constantFrom(4, 6))
      .chain((length) => fc.array(cronField, { minLength: length, maxLength: length })),
    fc.oneof({ weight: 9, arbitrary: fc.constant(" ") }, fc.constantFrom("  ", "\t")),
  )
  .map(([fields, space]) => fields.join(space))
  .filter((text) => text.length <= 100);
