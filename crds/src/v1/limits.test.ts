import { describe, expect, it } from "vitest";
import { parseCreateProject } from "./create-project.ts";
import {
  patchCustomDomainsBody,
  patchDescriptionBody,
  patchDomainBody,
  patchEnvsBody,
  patchImageBody,
  patchNameBody,
} from "./settings.ts";

/** Every field and size limit of the specification, on both sides of its edge, at creation and in the settings. */

type Json = Record<string, unknown>;

/** A legal body on a plan that is not free; `path` reads `config.port`. */
function bodyWith(path: string, value: unknown): Json {
  const body: Json = {
    name: "my-shop",
    description: "A shop",
    plan: "premium",
    payment_mode: "hourly",
    config: {
      type_project: "http",
      exposure: "public",
      image: { url: "registry.example.com/app:1", is_public: true },
      port: 8080,
      instances: 2,
      storage: { persistent: true, capacity: 5, dir_path_to_persist: "/data" },
      envs: [],
      network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0", description: "all" }] },
      autoscaling: { enabled: true, max_instances: 4 },
    },
  };
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  const parent = keys.reduce<Json>((at, key) => at[key] as Json, body);
  parent[last] = value;
  return body;
}
const fieldsOf = (body: unknown): string[] => {
  const result = parseCreateProject(body);
  return result.ok ? [] : result.issues.map(({ field }) => field);
};

const many = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index));
const ranges = (count: number) => many(count, (i) => ({ cidr: `203.0.113.${i}/32`, description: "" }));
const domains = (count: number) => many(count, (i) => `d${i}.example.com`);
const image = (length: number) => `r.example/${"i".repeat(length - "r.example/".length)}`;
const variables = (count: number) => many(count, (i) => ({ name: `N${i}`, value: "v" }));

/** Field, legal values at the edges, illegal ones behind them, and the field that a refusal names when it is deeper. */
const edges: [string, unknown[], unknown[], string?][] = [
  // Shows: docs/applications.md#limits: project name | 6 to 32 characters
  [
    "name",
    ["a-good", "n".repeat(32)],
    ["five5", "n".repeat(33), "", "a_bcdef", "Abcdef", "-abcde", "abcde-"],
  ],
  // Shows: docs/applications.md#limits: description | 1 to 256 characters
  ["description", ["x", "é".repeat(256), "🫖".repeat(256)], ["", "x".repeat(257)]],
  // Shows: docs/applications.md#limits: subdomain | 3 to 54 characters
  ["config.subdomain", ["abc", "s".repeat(54)], ["ab", "s".repeat(55), "-abc", "abc-", "a.bc", "Abc"]],
  // Shows: docs/applications.md#limits: custom domains | at most 20
  ["config.custom_domains", [[], domains(20)], [domains(21)]],
  // Shows: docs/applications.md#limits: image.url | 8 to 256 characters
  ["config.image.url", ["nginx:12", image(256)], ["nginx:1", image(257), "https://a.example/b"]],
  ["config.port", [1, 65_535], [0, 65_536, 80.5, "8080"]],
  ["config.instances", [1, 4], [0, -1, 1.5, "2"]],
  // Shows: docs/applications.md#limits: storage.capacity | 1 to 250 GB
  ["config.storage.capacity", [1, 250], [0, 251, "5"]],
  // Shows: docs/applications.md#limits: dir_path_to_persist | absolute, up to 80 characters
  [
    "config.storage.dir_path_to_persist",
    ["/d", `/${"p".repeat(79)}`],
    ["data", `/${"p".repeat(80)}`, undefined],
  ],
  // Shows: docs/applications.md#limits: environment variables | at most 50; name 1 to 120, value 1 to
  ["config.envs", [[], variables(50)], [variables(51)]],
  ["config.variable_group_ids", [[], many(10, (i) => `v${i}`)], [many(11, (i) => `v${i}`), ["v", "v"]]],
  [
    "config.variable_group_ids",
    [["v".repeat(40)]],
    [["v".repeat(41)], ["V"], [""]],
    "config.variable_group_ids[0]",
  ],
  // Shows: docs/applications.md#limits: environment variables | at most 50; name 1 to 120, value 1 to
  [
    "config.envs",
    [[{ name: "N", value: "v" }], [{ name: "N".repeat(120), value: "v" }]],
    [[{ name: "", value: "v" }], [{ name: "N".repeat(121), value: "v" }]],
    "config.envs[0].name",
  ],
  // Shows: docs/applications.md#limits: environment variables | at most 50; name 1 to 120, value 1 to
  [
    "config.envs",
    [[{ name: "A", value: "v" }], [{ name: "A", value: "v".repeat(32_760) }]],
    [[{ name: "A", value: "" }], [{ name: "A", value: "v".repeat(32_761) }]],
    "config.envs[0].value",
  ],
  // Shows: docs/applications.md#limits: ingress_white_list | 1 to 10 items
  ["config.network_access.ingress_white_list", [ranges(1), ranges(10)], [[], ranges(11)]],
  // Shows: docs/applications.md#limits: ingress_black_list | up to 10 items
  ["config.network_access.ingress_black_list", [[], ranges(10), undefined], [ranges(11)]],
  ["config.autoscaling.max_instances", [2, 100], [1, 101, "4"]],
  // Shows: docs/applications.md#limits: autoscaling: CPU target | 1 to 100
  ["config.autoscaling.cpu_target_percentage", [1, 100, undefined], [0, 101, "70"]],
  // Shows: docs/applications.md#limits: autoscaling: memory target | 1 to 100
  ["config.autoscaling.memory_target_percentage", [1, 100, undefined], [0, 101, "70"]],
  // Shows: docs/applications.md#limits: autoscaling: target of requests | 1 to 10,000 a second for each instance
  ["config.autoscaling.requests_per_second_target", [1, 10_000, undefined], [0, 10_001, "70"]],
];

describe("at creation", () => {
  // Shows: docs/applications.md#conventions: numbers are JSON numbers: a string is 400
  // Shows: docs/applications.md#create: `name`, `description`: lengths and letters
  // Shows: docs/applications.md#create: `config.image.url`: without a scheme
  // Shows: docs/applications.md#create: `config.port` is what the application listens on
  // Shows: docs/applications.md#create: `config.autoscaling`: on plans that have it, `max_instances` at
  // Shows: docs/applications.md#limits: project name | 6 to 32 characters
  // Shows: docs/applications.md#limits: description | 1 to 256 characters
  // Shows: docs/applications.md#limits: subdomain | 3 to 54 characters
  // Shows: docs/applications.md#limits: custom domains | at most 20
  // Shows: docs/applications.md#limits: image.url | 8 to 256 characters
  // Shows: docs/applications.md#limits: environment variables | at most 50; name 1 to 120, value 1 to
  // Shows: docs/applications.md#limits: storage.capacity | 1 to 250 GB
  // Shows: docs/applications.md#limits: dir_path_to_persist | absolute, up to 80 characters
  // Shows: docs/applications.md#limits: ingress_white_list | 1 to 10 items
  // Shows: docs/applications.md#limits: ingress_black_list | up to 10 items
  // Shows: docs/applications.md#limits: autoscaling: CPU target | 1 to 100
  // Shows: docs/applications.md#limits: autoscaling: memory target | 1 to 100
  it.each(edges)("%s ends where the specification says", (path, legal, illegal, named = path) => {
    for (const value of legal) {
      expect(fieldsOf(bodyWith(path, value))).toEqual([]);
    }
    for (const value of illegal) {
      expect(fieldsOf(bodyWith(path, value))).toContain(named);
    }
  });

  // Shows: docs/applications.md#limits: storage.capacity on free plans | exactly 1 GB
  it("storage.capacity is exactly 1 on the free plan", () => {
    const free = (capacity: number) => ({ ...bodyWith("config.storage.capacity", capacity), plan: "free" });
    expect(fieldsOf(free(1))).toEqual([]);
    expect(fieldsOf(free(2))).toEqual(["config.storage.capacity"]);
  });
});

describe("in the settings", () => {
  const settings: [string, { safeParse: (body: unknown) => { success: boolean } }][] = [
    ["name", patchNameBody],
    ["description", patchDescriptionBody],
    ["config.subdomain", patchDomainBody],
    ["config.custom_domains", patchCustomDomainsBody],
    ["config.image.url", patchImageBody],
    ["config.envs", patchEnvsBody],
  ];
  const keys: Record<string, string> = { "config.subdomain": "domain", "config.image.url": "image" };

  // Shows: docs/applications.md#limits: the settings | the same limits
  it.each(settings)("%s ends there, too", (path, body) => {
    const key = keys[path] ?? path.split(".").at(-1) ?? "";
    const own = edges.filter(([one]) => one === path);
    expect(own.length).toBeGreaterThan(0);
    for (const [, legal, illegal] of own) {
      for (const value of legal) {
        expect(body.safeParse({ [key]: value }).success).toBe(true);
      }
      for (const value of illegal) {
        expect(body.safeParse({ [key]: value }).success).toBe(false);
      }
    }
  });
});
