/** Settings of the installation for builds. */

import { isIP } from "node:net";
import { baseImages, engineSettings } from "@slipway/builder/contract";
import { parseQuantity } from "@slipway/controller-runtime";
import { parse } from "yaml";
import { z } from "zod";
import { parseCidr } from "../net/cidr.ts";
import { placement } from "../workload/app.ts";

const quantity = z.string().regex(/^[1-9][0-9]*(m|Mi|Gi|Ti)?$/, "must be a quantity such as 2Gi");
const seconds = z.int().min(1).max(86_400);
const pem = z.string().max(1_048_576);

const cidr = z.string().refine((text) => {
  try {
    parseCidr(text);
    return true;
  } catch {
    return false;
  }
}, "must be a range such as 10.0.0.0/8");

const limitValues = z.strictObject({
  cpu: quantity.default("2"),
  memory: quantity.default("2Gi"),
  ephemeralStorage: quantity
    .default("10Gi")
    .describe("Of the checkout, the image and all else but the cache."),
  ephemeralRequest: quantity
    .optional()
    .describe(
      "Reserved of it for each build; all of it when absent, for a node whose disk is full runs nothing.",
    ),
  deadlineSeconds: seconds.min(60).default(1_800).describe("In which all steps of a build must be done."),
  fetchSeconds: seconds.default(300),
  fetchBytes: z.int().min(1).default(500_000_000),
  fetchFiles: z.int().min(1).default(100_000),
  buildSeconds: seconds.default(1_200),
  imageBytes: z.int().min(1).default(4_000_000_000),
  pushSeconds: seconds.default(300),
  publishSeconds: seconds.default(600).describe("In which the built version must serve."),
});

/** The apiserver rejects a pod that requests more than its limit: no build would ever start. */
const limits = limitValues.refine(
  ({ ephemeralStorage, ephemeralRequest = ephemeralStorage }) =>
    (parseQuantity(ephemeralRequest) ?? 0n) <= (parseQuantity(ephemeralStorage) ?? 0n),
  { path: ["ephemeralRequest"], message: "must be at most ephemeralStorage" },
);

const settings = z.strictObject({
  namespace: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "must be a DNS label")
    .default("slipway-builds"),
  image: z.string().min(1).max(512).describe("The builder's image."),
  engine: z
    .enum(engineSettings)
    .default("auto")
    .describe("What makes images; auto: the first of them that is seen to run."),
  registry: z.strictObject({
    host: z.string().regex(/^[a-z0-9.-]+(:[0-9]{1,5})?$/, "must be host or host:port"),
    ca: pem.default("").describe("Authority of its certificate as PEM; public ones when empty."),
  }),
  baseImages: baseImages.default({}),
  ca: pem
    .default("")
    .describe("Authorities that steps of builds trust, as PEM; those of their images when empty."),
  concurrency: z.int().min(1).max(100).default(2).describe("Builds of one organization at once; more wait."),
  platformConcurrency: z
    .int()
    .min(1)
    .max(1_000)
    .default(20)
    .describe("Builds of all organizations at once; those with fewest go first."),
  tries: z.int().min(1).max(10).default(4).describe("Of a build that fails by the platform's fault."),
  limits: limits.prefault({}),
  cache: z
    .strictObject({
      size: quantity.default("10Gi"),
      bytes: z
        .int()
        .min(1)
        .default(8_000_000_000)
        .describe("Most that a project's cache keeps of earlier builds."),
      storageClass: z.string().max(253).default("").describe("The cluster's default when empty."),
      unusedDays: z
        .int()
        .min(1)
        .max(3_650)
        .default(14)
        .describe("Without a build, after which a cache goes."),
    })
    .prefault({}),
  seccompProfile: z
    .string()
    .min(1, "must name a profile, or Unconfined")
    .max(253)
    .default("slipway/builder.json")
    .describe("Profile of the nodes for the step that builds; Unconfined: none of the platform's choice."),
  pods: placement.prefault({}).describe("Where builds run."),
  network: z
    .strictObject({
      dnsNamespace: z.string().default("kube-system"),
      deniedCidrs: z.array(cidr).default([]),
      opened: z
        .array(
          z.strictObject({
            address: z.string().refine((text) => isIP(text) > 0, "must be an address"),
            port: z.int().min(1).max(65_535),
          }),
        )
        .default([])
        .describe("Denied otherwise: the registry of builds, a Git server or a mirror inside."),
    })
    .prefault({}),
  keptSeconds: z.int().min(1).max(86_400).default(600).describe("For which a Build stays that has ended."),
});
/** Settings of builds; without them builds are disabled. */
export type BuildSettings = z.output<typeof settings>;

/** Reads the file that `SLIPWAY_BUILDS_FILE` names. @throws Error that lists what is wrong */
export function parseBuildSettings(text: string): BuildSettings {
  const result = settings.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid settings of builds:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}
