import { describe, expect, it } from "vitest";
import { projectTypes } from "../project/types.ts";
import { createProjectBodies } from "./bodies.ts";
import { createProjectBody, parseCreateProject } from "./create-project.ts";
import { toOpenApi } from "./snake.ts";

type Body = Record<string, unknown> & { config: Record<string, unknown> };

const open = {
  ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }],
  ingress_black_list: [],
};
const image = { url: "registry.example.com/team/app:1.2.3", is_public: true };
const common = (plan: string) => ({ name: "my-shop", description: "A shop", plan, payment_mode: "hourly" });
const database = (type_project: string, version: string, instances: number, plan: string): Body => ({
  ...common(plan),
  config: {
    type_project,
    version,
    instances,
    storage: { persistent: true, capacity: 10 },
    envs: [],
    network_access: open,
  },
});

const valid = {
  http: (): Body => ({
    ...common("premium"),
    config: {
      type_project: "http",
      exposure: "public",
      image,
      port: 8080,
      instances: 2,
      storage: { persistent: true, capacity: 5, dir_path_to_persist: "/data" },
      envs: [{ name: "LOG_LEVEL", value: "debug" }],
      network_access: open,
      subdomain: "my-shop",
      custom_domains: ["shop.example.com"],
      healthcheck: { enabled: true, path: "/healthz", liveness_path: "/livez", startup_timeout_seconds: 90 },
      termination_grace_period_seconds: 60,
      autoscaling: { enabled: true, max_instances: 4, cpu_target_percentage: 70 },
    },
  }),
  git: (): Body => {
    const body = structuredClone(valid.http());
    const { image: _, ...config } = body.config;
    return {
      ...body,
      config: {
        ...config,
        source: { connection_id: "c1", repository_id: "r/1", branch: "main", auto_deploy: true },
        build: { runtime: "node", version: "24", build_command: "npm run build", pre_build_command: null },
      },
    };
  },
  postgresql: () => database("postgresql", "17", 3, "db-basic"),
  mariadb: () => database("mariadb", "11", 3, "db-basic"),
  clickhouse: () => database("clickhouse", "26.8.6.5", 1, "analytics-basic"),
  valkey: (): Body => ({
    ...common("db-basic"),
    config: {
      type_project: "valkey",
      profile: "key_value",
      version: "9.1.1",
      storage: { persistent: true, capacity: 5 },
      network_access: { ingress_white_list: [] },
    },
  }),
  worker: (): Body => ({
    ...common("premium"),
    config: {
      type_project: "worker",
      image,
      instances: 2,
      storage: { persistent: false, capacity: 5 },
      envs: [{ name: "QUEUE", value: "mail" }],
      command: ["node", "worker.js"],
      readiness: { command: ["cat", "/tmp/ready"] },
      pre_deploy_command: ["node", "migrate.js"],
      pre_deploy_timeout_seconds: 60,
      termination_grace_period_seconds: 300,
      autoscaling: { enabled: true, max_instances: 4, memory_target_percentage: 80 },
    },
  }),
  job: (): Body => ({
    ...common("job-basic"),
    payment_mode: "per_minute",
    config: {
      type_project: "job",
      image,
      envs: [],
      storage: { persistent: false, capacity: 1 },
      job: { cron: "*/5 * * * *", command: ["/bin/sh", "-c"], args: ["date"] },
    },
  }),
};
type Case = keyof typeof valid;

const set = (path: string, value: unknown) => (body: Body) => {
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  const parent = keys.reduce<Record<string, unknown>>((at, key) => at[key] as Record<string, unknown>, body);
  if (value === undefined) {
    delete parent[last];
  } else {
    parent[last] = value;
  }
};

const issuesOf = (body: unknown) => {
  const result = parseCreateProject(body);
  return result.ok ? [] : result.issues;
};

describe("parseCreateProject", () => {
  // Shows: docs/applications.md#create: `config` of a complete body is accepted, and each of its rules
  it.each(Object.keys(valid) as Case[])("accepts a complete body of %s", (name) => {
    expect(issuesOf(valid[name]())).toEqual([]);
  });

  it("makes a spec without a secret in it, and hands the secrets beside it", () => {
    const body = structuredClone(valid.http());
    const authentication = { auth_type: "username_password", username: "u", token: "t0ken" };
    set("config.image", { ...image, is_public: false, authentication })(body);
    const result = parseCreateProject(body);
    if (!result.ok) {
      throw new Error(JSON.stringify(result.issues));
    }
    const { spec, envs, imageAuthentication } = result.value;
    expect(spec).toEqual({
      type: "http",
      name: "my-shop",
      description: "A shop",
      plan: "premium",
      paymentMode: "hourly",
      exposure: "public",
      image: { url: image.url, isPublic: false },
      port: 8080,
      instances: 2,
      storage: { persistent: true, capacity: 5, dirPathToPersist: "/data" },
      networkAccess: {
        ingressWhiteList: [{ cidr: "0.0.0.0/0", description: "everybody" }],
        ingressBlackList: [],
      },
      subdomain: "my-shop",
      customDomains: ["shop.example.com"],
      healthcheck: { enabled: true, path: "/healthz", livenessPath: "/livez", startupTimeoutSeconds: 90 },
      terminationGracePeriodSeconds: 60,
      autoscaling: { enabled: true, maxInstances: 4, cpuTargetPercentage: 70 },
    });
    expect(envs).toEqual([{ name: "LOG_LEVEL", value: "debug" }]);
    expect(imageAuthentication).toEqual(authentication);
  });

  it("normalizes paths and schedules and drops commands that are null", () => {
    const body = valid.git();
    set("config.build.context_path", "  ./apps/web/ ")(body);
    const result = parseCreateProject(body);
    if (!result.ok) {
      throw new Error(JSON.stringify(result.issues));
    }
    expect(result.value.spec.build).toEqual({
      runtime: "node",
      version: "24",
      buildCommand: "npm run build",
      contextPath: "apps/web",
    });
    const job = valid.job();
    set("config.job.cron", "  0   3 * *  1 ")(job);
    const parsed = parseCreateProject(job);
    expect(parsed.ok && parsed.value.spec.job?.cron).toBe("0 3 * * 1");
  });

  /** A body, the change that breaks it, the field that must be named, and what must be said of it. */
  const broken: [Case, (body: Body) => void, string, RegExp][] = [
    ["http", set("name", "shop"), "name", /6/],
    ["http", set("name", "-my-shop"), "name", /lowercase/],
    ["http", set("name", "my_shop1"), "name", /lowercase/],
    ["http", set("name", undefined), "name", /is required/],
    ["http", set("description", ""), "description", /1/],
    ["http", set("description", "x".repeat(257)), "description", /256/],
    ["http", set("plan", "db-basic"), "plan", /http/],
    ["http", set("payment_mode", "per_minute"), "payment_mode", /per_minute is for jobs/],
    ["http", set("surprise", 1), "surprise", /unknown field/],
    ["http", set("config.surprise", 1), "config.surprise", /unknown field surprise/],
    [
      "http",
      set("config.version", "17"),
      "config.version",
      /version does not belong to projects of type http/,
    ],
    ["http", set("config.job", { cron: "* * * * *" }), "config.job", /only to: job/],
    ["http", set("config.readiness", { command: ["true"] }), "config.readiness", /only to: worker/],
    ["worker", set("config.port", 80), "config.port", /only to: http/],
    ["worker", set("config.exposure", "private"), "config.exposure", /only to: http/],
    ["worker", set("config.custom_domains", []), "config.custom_domains", /only to: http/],
    ["worker", set("config.network_access", open), "config.network_access", /only to: http/],
    ["worker", set("config.healthcheck", { enabled: false }), "config.healthcheck", /only to: http/],
    ["worker", set("config.command", []), "config.command", />=1/],
    ["worker", set("config.command", Array(65).fill("a")), "config.command", /<=64/],
    [
      "worker",
      set("config.command", Array(5).fill("a".repeat(1_000))),
      "config.command",
      /at most 4096 bytes/,
    ],
    ["job", set("config.command", ["node"]), "config.command", /only to: http, worker/],
    ["worker", set("config.readiness.command", []), "config.readiness.command", />=1/],
    ["worker", set("config.readiness.command", Array(65).fill("a")), "config.readiness.command", /<=64/],
    ["worker", set("config.instances", undefined), "config.instances", /is required/],
    ["worker", set("plan", "job-basic"), "plan", /not a plan for worker/],
    ["worker", set("payment_mode", "per_minute"), "payment_mode", /per_minute is for jobs/],
    ["http", set("config.profile", "cache"), "config.profile", /only to: valkey/],
    ["http", set("config.port", "8080"), "config.port", /expected number, received string/],
    ["http", set("config.port", 0), "config.port", /1/],
    ["http", set("config.port", 80.5), "config.port", /int/],
    ["http", set("config.instances", "2"), "config.instances", /expected number/],
    ["http", set("config.envs", undefined), "config.envs", /is required/],
    ["http", set("config.envs", [{ name: "A B", value: "x" }]), "config.envs[0].name", /letters/],
    ["http", set("config.envs", [{ name: "A", value: "" }]), "config.envs[0].value", /1/],
    ["http", set("config.envs", [{ name: "A", value: "a\0b" }]), "config.envs[0].value", /NUL/],
    [
      "http",
      set(
        "config.envs",
        [{ name: "A".repeat(120), value: "😀".repeat(16_380) }].concat(
          Array.from({ length: 49 }, (_, i) => ({ name: `V${i}`, value: "é".repeat(32_760) })),
        ),
      ),
      "config.envs",
      /together longer/,
    ],
    [
      "http",
      set(
        "config.envs",
        Array.from({ length: 51 }, (_, i) => ({ name: `V${i}`, value: "x" })),
      ),
      "config.envs",
      /50/,
    ],
    [
      "http",
      set("config.envs", [
        { name: "A", value: "1" },
        { name: "A", value: "2" },
      ]),
      "config.envs",
      /same name/,
    ],
    [
      "http",
      set("config.image.is_public", false),
      "config.image.authentication",
      /authentication is required when is_public is false/,
    ],
    ["http", set("config.image.url", "https://a.example/b"), "config.image.url", /without http/],
    [
      "http",
      set("config.image.pull_secret_ref", { name: "x" }),
      "config.image.pull_secret_ref",
      /unknown field/,
    ],
    ["http", set("config.image", undefined), "config.image", /exactly one of image, source and github/],
    ["git", set("config.image", image), "config.image", /exactly one/],
    ["git", set("config.build", undefined), "config.build", /together/],
    ["git", set("config.build.context_path", "/etc"), "config.build.context_path", /relative path/],
    ["git", set("config.build.context_path", "a/../b"), "config.build.context_path", /relative path/],
    [
      "git",
      set("config.source.version_deploy", { enabled: true, event: "tag", tag_pattern: "v*" }),
      "config.source.auto_deploy",
      /auto_deploy cannot be true while version_deploy.enabled/,
    ],
    [
      "git",
      set("config.source.version_deploy", { enabled: false, tag_pattern: "v[0-9]" }),
      "config.source.version_deploy.tag_pattern",
      /wildcards/,
    ],
    [
      "http",
      set("config.exposure", "private"),
      "config.subdomain",
      /subdomain is not allowed when exposure is private/,
    ],
    ["http", set("config.exposure", "private"), "config.custom_domains", /custom_domains must be empty/],
    ["http", set("config.storage.capacity", 251), "config.storage.capacity", /250/],
    [
      "http",
      set("config.storage.dir_path_to_persist", undefined),
      "config.storage.dir_path_to_persist",
      /storage.dir_path_to_persist is required/,
    ],
    [
      "http",
      set("config.storage.dir_path_to_persist", "data"),
      "config.storage.dir_path_to_persist",
      /absolute/,
    ],
    [
      "http",
      set("config.network_access.ingress_white_list", []),
      "config.network_access.ingress_white_list",
      /at least one/,
    ],
    [
      "http",
      set("config.network_access.ingress_black_list", [{ cidr: "10.0.0.300/8" }]),
      "config.network_access.ingress_black_list[0].cidr",
      /CIDR/,
    ],
    ["http", set("config.subdomain", "ab"), "config.subdomain", /3/],
    [
      "http",
      set("config.healthcheck.startup_timeout_seconds", 9),
      "config.healthcheck.startup_timeout_seconds",
      /10/,
    ],
    ["http", set("config.healthcheck.liveness_path", "livez"), "config.healthcheck.liveness_path", /begins/],
    [
      "http",
      set("config.termination_grace_period_seconds", 301),
      "config.termination_grace_period_seconds",
      /300/,
    ],
    [
      "job",
      set("config.termination_grace_period_seconds", 30),
      "config.termination_grace_period_seconds",
      /only to: http, worker/,
    ],
    [
      "http",
      set("config.custom_domains", ["shop.example.com", "shop.example.com"]),
      "config.custom_domains",
      /twice/,
    ],
    [
      "http",
      set("config.autoscaling.max_instances", 1),
      "config.autoscaling.max_instances",
      /autoscaling.max_instances must be at least instances/,
    ],
    [
      "http",
      set("config.autoscaling.cpu_target_percentage", 101),
      "config.autoscaling.cpu_target_percentage",
      /100/,
    ],
    ["http", set("plan", "free"), "config.storage.capacity", /exactly 1/],
    ["postgresql", set("config.version", "14"), "config.version", /15, 16, 17, 18/],
    ["postgresql", set("config.instances", 4), "config.instances", /1 to 3/],
    ["postgresql", set("config.port", 5432), "config.port", /only to: http/],
    [
      "postgresql",
      set("config.storage.dir_path_to_persist", "/x/y"),
      "config.storage.dir_path_to_persist",
      /http, job/,
    ],
    ["mariadb", set("config.instances", 1), "config.instances", /exactly 3/],
    ["mariadb", set("plan", "db-free"), "plan", /not for mariadb/],
    ["clickhouse", set("plan", "db-basic"), "plan", /analytics-/],
    ["valkey", set("config.profile", "cache"), "config.storage", /not allowed for cache/],
    ["valkey", set("config.profile", "queue"), "plan", /queue-/],
    ["valkey", set("config.envs", []), "config.envs", /does not belong/],
    ["valkey", set("config.storage.persistent", false), "config.storage", /persistent/],
    ["job", set("payment_mode", "hourly"), "payment_mode", /jobs accept no other/],
    ["job", set("config.job.cron", "* * * * * *"), "config.job.cron", /exactly five fields/],
    ["job", set("config.job.cron", "@daily"), "config.job.cron", /exactly five fields/],
    ["job", set("config.image", undefined), "config.image", /exactly one of image and github/],
    ["job", set("config.instances", 1), "config.instances", /does not belong/],
    ["job", set("config.job.command", "date"), "config.job.command", /expected array/],
  ];
  // Shows: docs/applications.md#conventions: fields of another type of project are 400
  // Shows: docs/applications.md#create: `name`, `description`: lengths and letters
  // Shows: docs/applications.md#create: `plan`: known, and for the type
  // Shows: docs/applications.md#create: `config` of a complete body is accepted, and each of its rules
  // Shows: docs/applications.md#create: `config.exposure`: private has no domain, no subdomain, no
  // Shows: docs/applications.md#create: `config.image.url`: without a scheme
  // Shows: docs/applications.md#create: `config.image.is_public` false needs `authentication`
  // Shows: docs/applications.md#create: `config.envs`: literal, any characters; what cannot be an
  // Shows: docs/applications.md#errors-project-creation: 400 | plan incompatible with the type
  // Shows: docs/applications.md#errors-project-creation: 400 | unsupported version (databases)
  // Shows: docs/databases-api.md#rules-of-a-creation: 400: plan by type and profile: `db-*`
  // Shows: docs/applications.md#create: `config.command`: [what runs](#command) in place of the image's own
  // Shows: docs/applications.md#workers: `config.readiness.command`, 1 to 64 words
  it.each(broken)("refuses a body of %s broken by case %#", (name, change, field, message) => {
    const body = structuredClone(valid[name]());
    change(body);
    const found = issuesOf(body).filter((issue) => issue.field === field);
    expect(found, JSON.stringify(issuesOf(body))).not.toEqual([]);
    expect(found.map((issue) => issue.message).join("; ")).toMatch(message);
  });

  // Shows: docs/applications.md#conventions: every broken rule is reported in one answer, each naming
  it("names all broken rules together, each once", () => {
    const body = structuredClone(valid.http());
    for (const change of [
      set("name", "x"),
      set("config.port", "80"),
      set("config.exposure", "private"),
      set("config.envs", [{ name: "", value: "v" }]),
      set("config.profile", "cache"),
      set("plan", "job-basic"),
    ]) {
      change(body);
    }
    const issues = issuesOf(body).map(({ field }) => field);
    expect(issues).toEqual(
      expect.arrayContaining([
        "name",
        "plan",
        "config.port",
        "config.subdomain",
        "config.custom_domains",
        "config.envs[0].name",
        "config.profile",
      ]),
    );
    const messages = issuesOf(body).map(({ field, message }) => `${field}: ${message}`);
    expect(new Set(messages).size).toBe(messages.length);
  });

  it.each([
    [undefined, "body"],
    [null, "body"],
    [[], "body"],
    ["{}", "body"],
    [{}, "config"],
    [{ config: [] }, "config"],
    [{ config: {} }, "config.type_project"],
    [{ config: { type_project: "mongodb" } }, "config.type_project"],
    [{ config: { type_project: "constructor" } }, "config.type_project"],
  ])("refuses %j at %s", (body, field) => {
    expect(issuesOf(body).map((issue) => issue.field)).toContain(field);
  });

  it("is not misled by keys that objects are born with", () => {
    const body = JSON.parse(
      JSON.stringify(valid.http()).replace('"config":{', '"config":{"__proto__":{"paused":true},'),
    ) as Body;
    expect(issuesOf(body).map(({ field }) => field)).toContain("config.__proto__");
  });
});

describe("a body of unknown fields", () => {
  it("costs no more than it has fields, each named once", () => {
    const unknown = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`k${index}`, 1]));
    // Of the processor, in microseconds: a busy machine takes longer.
    const before = process.threadCpuUsage();
    const result = parseCreateProject({ config: { type_project: "http", ...unknown } });
    expect(process.threadCpuUsage(before).user).toBeLessThan(300_000);
    expect(result.ok).toBe(false);
    const issues = result.ok ? [] : result.issues;
    expect(issues.filter(({ message }) => message.startsWith("unknown field"))).toHaveLength(9_000);
    expect(new Set(issues.map(({ field }) => field)).size).toBe(issues.length);
  });
});

describe("the bodies' OpenAPI", () => {
  it.each(projectTypes)(
    "of %s has only snake_case keys, no Kubernetes words, and no unknown fields",
    (type) => {
      const json = JSON.stringify(toOpenApi(createProjectBodies[type]));
      expect(json).not.toContain("x-kubernetes");
      const keys = [...json.matchAll(/"([A-Za-z_]+)":\{/g)].map(([, key]) => key ?? "");
      const words = ["additionalProperties", "anyOf", "oneOf"];
      expect(keys.filter((key) => /[A-Z]/.test(key) && !words.includes(key))).toEqual([]);
      expect(json).toContain('"additionalProperties":false');
    },
  );

  it("of all types is one schema", () => {
    expect(toOpenApi(createProjectBody).anyOf).toHaveLength(projectTypes.length);
  });
});
