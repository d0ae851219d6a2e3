import { fileURLToPath } from "node:url";
import { catalog, type Project, projectSpec } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { goldenTests } from "../../../../test/kit/operator/golden.ts";
import { exampleJob } from "../../../../test/kit/operator/projects.ts";
import { withBuiltImage } from "../../projects/images/built-image.ts";
import { desired, validateJob } from "../kind.ts";
import { toJobApp } from "./app.ts";

const size = { requests: { cpu: "10m", memory: "32Mi" }, limits: { cpu: "500m", memory: "512Mi" } };
const none = { logs: true, metrics: false, healthcheck: false, autoscaling: false };
const plans = catalog.parse({
  currency: "brl",
  httpPlans: [
    {
      plan: "basic",
      prices: { hourly: "3", monthly: "2160", yearly: "25920" },
      resources: size,
      maxInstances: 1,
      features: [],
      permissions: {},
      capabilities: { ...none, custom_subdomain: false, network_access: false },
    },
  ],
  jobPlans: [
    {
      plan: "job-basic",
      pricePerMinute: "0.02",
      resources: size,
      features: [],
      permissions: {},
    },
    {
      plan: "job-premium",
      pricePerMinute: "0.05",
      resources: { requests: { cpu: "15m", memory: "48Mi" }, limits: { cpu: "1", memory: "1Gi" } },
      features: [],
      permissions: {},
    },
  ],
  storagePlans: [
    {
      storage: "ephemeral",
      persistent: false,
      prices: { hourly: "0", monthly: "0", yearly: "0" },
      ephemeralRequest: "32Mi",
    },
    {
      storage: "block",
      persistent: true,
      storageClass: "fast",
      prices: { hourly: "1", monthly: "720", yearly: "8640" },
    },
  ],
  databasePlans: [],
  engines: [],
});

/** A case may set, next to the project, the longest time of a run and of its start. */
interface Case {
  project: Project;
  runLimitSeconds?: number;
  startDeadlineSeconds?: number;
  templateVersion?: number;
}

function objectsOf(input: unknown) {
  const {
    project: fixture,
    runLimitSeconds = 3_600,
    startDeadlineSeconds = 600,
    templateVersion,
  } = input as Case;
  projectSpec.parse(fixture.spec);
  const project = withBuiltImage(fixture);
  const accepted = { organizationId: "alpha", plan: validateJob(project, plans) };
  const platform = { runLimitSeconds, startDeadlineSeconds };
  return desired({ ...toJobApp(project, accepted, { catalog: plans, platform }), templateVersion });
}

goldenTests(fileURLToPath(new URL("testdata", import.meta.url)), objectsOf);

interface MadeCronJob {
  spec: {
    schedule: string;
    suspend: boolean;
    jobTemplate: {
      metadata: { annotations: Record<string, string> };
      spec: { template: { metadata: { annotations: Record<string, string> }; spec: MadePod } };
    };
  };
}
interface MadePod {
  containers: { command?: string[]; args?: string[]; env?: unknown; resources: unknown }[];
}

function childrenOf(spec: Partial<Project["spec"]> = {}) {
  const project = exampleJob({ namespace: "slipway-org-alpha", name: "p1" }, spec);
  const { spec: cronJob } = objectsOf({ project }).at(-1) as unknown as MadeCronJob;
  const { metadata, spec: pod } = cronJob.jobTemplate.spec.template;
  const hash = metadata.annotations["slipway.dev/settings-hash"];
  return { cronJob, hash, container: pod.containers[0] };
}

test("the same job always has the same objects", () => {
  expect(childrenOf()).toEqual(childrenOf());
});

test("nothing runs before its admission, twice, or concurrently", () => {
  const { cronJob } = childrenOf();
  expect(cronJob).toMatchObject({
    concurrencyPolicy: "Forbid",
    timeZone: "Etc/UTC",
    jobTemplate: {
      spec: {
        suspend: true,
        backoffLimit: 0,
        podReplacementPolicy: "Failed",
        template: {
          metadata: { finalizers: ["slipway.dev/jobrun"] },
          spec: { restartPolicy: "Never", terminationGracePeriodSeconds: 30 },
        },
      },
    },
  });
});

test.each([60, 600, 86_400])(
  "what ends a run should nobody else do it leaves room for %i s before its start",
  (startDeadlineSeconds) => {
    const project = exampleJob({ namespace: "slipway-org-alpha", name: "p1" });
    const applied = objectsOf({ project, startDeadlineSeconds }).at(-1) as unknown as {
      spec: { jobTemplate: { spec: { activeDeadlineSeconds: number } } };
    };
    const { activeDeadlineSeconds } = applied.spec.jobTemplate.spec;
    expect(activeDeadlineSeconds).toBeGreaterThanOrEqual(3_600 + startDeadlineSeconds + 60);
  },
);

/** What a kubelet makes of a word: Kubernetes' own rules, with every variable defined. */
function expanded(word: string): string {
  return word.replace(/\$(\$|\(([^)]*)\))/g, (_, escaped: string, name?: string) =>
    escaped === "$" ? "$" : `<${name}>`,
  );
}

describe("a word of command and args stays as it is:", () => {
  test.each(["$(NAME)", "echo $(date) $HOME", "kill $$", "$$(NAME)", "$$$(A)$", "$", "$(", "$(A", "", "a b"])(
    "%s",
    (word) => {
      const { container } = childrenOf({ job: { cron: "* * * * *", command: ["sh", word], args: [word] } });
      expect(container?.command?.map(expanded)).toEqual(["sh", word]);
      expect(container?.args?.map(expanded)).toEqual([word]);
    },
  );
});

test("without command and args the image's own are used, and the platform sets no variable", () => {
  const { container } = childrenOf();
  expect(container).not.toHaveProperty("command");
  expect(container).not.toHaveProperty("args");
  expect(container).not.toHaveProperty("env");
});

describe("the schedule is suspended", () => {
  const job = { cron: "* * * * *", closedAt: "2026-01-31T12:00:00Z" };
  test.each<[string, Partial<Project["spec"]>, boolean]>([
    ["never by default", {}, false],
    ["while the project is paused", { paused: true }, true],
    ["once it is closed", { job }, true],
  ])("%s", (_, spec, suspend) => {
    expect(childrenOf(spec).cronJob.suspend).toBe(suspend);
  });
});

describe("the settings' hash", () => {
  test.each<[string, Partial<Project["spec"]>]>([
    ["another schedule", { job: { cron: "0 3 * * *" } }],
    ["a pause", { paused: true }],
    ["a closed schedule", { job: { cron: "* * * * *", closedAt: "2026-01-31T12:00:00Z" } }],
    ["another name", { name: "renamed" }],
  ])("stays over %s", (_, spec) => {
    expect(childrenOf(spec).hash).toBe(childrenOf().hash);
  });

  test.each<[string, Partial<Project["spec"]>]>([
    ["another image", { image: { url: "registry.example/team/job:2", isPublic: true } }],
    [
      "a pinned image",
      { image: { url: "a.example/job:1", digest: `sha256:${"a".repeat(64)}`, isPublic: true } },
    ],
    ["other variables", { envsFrom: [{ name: "p1-env-0123456789ab" }] }],
    ["another plan", { plan: "job-premium" }],
    ["a command", { job: { cron: "* * * * *", command: ["true"] } }],
    ["arguments", { job: { cron: "* * * * *", args: ["-v"] } }],
    ["a restart", { restartedAt: "2026-01-01T00:00:00Z" }],
  ])("changes with %s", (_, spec) => {
    expect(childrenOf(spec).hash).not.toBe(childrenOf().hash);
  });
});

test("a run's plan is on its Job, and sizes its container", () => {
  const { cronJob, container } = childrenOf({
    plan: "job-premium",
    storage: { persistent: false, capacity: 7 },
  });
  expect(cronJob.jobTemplate.metadata.annotations).toEqual({ "slipway.dev/plan": "job-premium" });
  expect(container?.resources).toEqual({
    requests: { cpu: "15m", memory: "48Mi", "ephemeral-storage": "32Mi" },
    limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "7Gi" },
  });
});
