/** The tasks of the containers of a build pod, one for each step. Without secrets: those are files. */

import { fields } from "@slipway/crds";
import { z } from "zod";
import { baseImages, describeIssues, runtimeCatalog } from "./catalog.ts";

/** Variable with the container's tasks, as JSON. */
export const TASK_VARIABLE = "SLIPWAY_BUILD_TASKS";

/** Steps of a build that run in its pod, in their order. */
export const steps = ["fetch", "plan", "build", "push"] as const;
export type Step = (typeof steps)[number];

/** Containers of the pod, which wait for each other in this order. */
export const containers = ["fetch", "build", "push"] as const;
export type Container = (typeof containers)[number];

/** The steps that each container runs: the one that runs the client's code can also plan it. */
export const containerSteps: Readonly<Record<Container, readonly Step[]>> = {
  fetch: ["fetch"],
  build: ["plan", "build"],
  push: ["push"],
};

/** Builder backends, in the order in which they are tried. */
export const backendNames = ["buildkit", "buildah"] as const;
export type BackendName = (typeof backendNames)[number];

/** The configured backend of an installation; `auto` is the first one that passes a probe. */
export const backendSettings = ["auto", ...backendNames] as const;
export type BackendSetting = (typeof backendSettings)[number];

const seconds = z.int().min(1).max(86_400);
const bytes = z.int().min(1);
const ref = z.string().min(1).max(255);
const setting = z.string().max(4_096).nullish();

export const fetchTask = z
  .strictObject({
    step: z.literal("fetch"),
    /** Address of the repository, without a credential. */
    url: z.url({ protocol: /^(https|file)$/ }),
    /** Provider of the connection: GitHub's failures have codes of their own. */
    provider: z.string().min(1).max(64),
    commitSha: fields.commitSha.optional(),
    branch: ref.optional(),
    tag: ref.optional(),
    /** Address that the host was resolved to: the only one to connect to. */
    address: z.union([z.ipv4(), z.ipv6()]).optional(),
    /** PEM file of authorities that certify Git servers, beside the public ones. */
    caFile: z.string().optional(),
    /** Limit of the bytes that are fetched, and of the files' size. */
    maxBytes: bytes,
    maxFiles: z.int().min(1),
    timeoutSeconds: seconds,
  })
  .refine(({ commitSha, branch, tag }) => (commitSha ?? branch ?? tag) !== undefined, {
    message: "commitSha, branch or tag is required",
  });
export type FetchTask = z.output<typeof fetchTask>;

export const planTask = z.strictObject({
  step: z.literal("plan"),
  settings: z.strictObject({
    runtime: setting,
    version: setting,
    startCommand: setting,
    preBuildCommand: setting,
    buildCommand: setting,
    dockerfilePath: setting,
  }),
  /** Folder of the repository that is built, normalized. */
  contextPath: fields.contextPath.default("."),
  images: baseImages,
  /** The platform's own when absent. */
  catalog: runtimeCatalog.optional(),
  port: z.int().min(1).max(65_535),
});
export type PlanTask = z.output<typeof planTask>;

export const buildTask = z.strictObject({
  step: z.literal("build"),
  engine: z.enum(backendSettings).default("auto"),
  /** Registries by `host` or `host:port`, with the PEM file of their authority. */
  registries: z.record(z.string(), z.strictObject({ caFile: z.string().optional() })).default({}),
  /** PEM file of authorities that steps of the build trust, such as a proxy's; a whole bundle that replaces the image's. */
  caFile: z.string().optional(),
  /** Size limit of the cache. */
  cacheBytes: bytes,
  maxImageBytes: bytes,
  timeoutSeconds: seconds,
});
export type BuildTask = z.output<typeof buildTask>;

export const pushTask = z.strictObject({
  step: z.literal("push"),
  /** The destination, without tag and digest. */
  repository: z.string().regex(/^[a-z0-9][a-z0-9._:-]*(\/[a-z0-9._-]+)+$/),
  /** A tag of the image. */
  tag: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/)
    .optional(),
  caFile: z.string().optional(),
  /** As in the step `build`, whose result the client's steps may have forged. */
  maxImageBytes: bytes,
  timeoutSeconds: seconds,
});
export type PushTask = z.output<typeof pushTask>;

export const task = z.discriminatedUnion("step", [fetchTask, planTask, buildTask, pushTask]);
/** A task as the operator writes it, before defaults are applied. */
export type Task = z.input<typeof task>;

/** Reads one of a container's tasks. @throws Error that names every broken field, never a value */
export function parseTask<S extends Step>(
  step: S,
  json: string | undefined,
): Extract<z.output<typeof task>, { step: S }> {
  let value: unknown;
  try {
    value = JSON.parse(json ?? "");
  } catch {
    throw new Error(`${TASK_VARIABLE} is no JSON`);
  }
  const listed = z.array(z.looseObject({ step: z.string() })).safeParse(value);
  if (!listed.success) {
    throw new Error(`${TASK_VARIABLE}: ${describeIssues(listed.error)}`);
  }
  const own = listed.data.find((each) => each.step === step);
  if (own === undefined) {
    throw new Error(`${TASK_VARIABLE} has none of the step ${step}`);
  }
  const result = task.safeParse(own);
  if (!result.success) {
    throw new Error(`${TASK_VARIABLE}: ${describeIssues(result.error)}`);
  }
  return result.data as Extract<z.output<typeof task>, { step: S }>;
}
