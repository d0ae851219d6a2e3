import type { Project } from "@slipway/crds";

/** A public project as the documentation's example has it; override what a test is about. */
export function exampleProject(
  ref: { namespace: string; name: string },
  spec: Partial<Project["spec"]> = {},
): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: ref,
    spec: {
      type: "http",
      name: "example",
      plan: "basic",
      paymentMode: "hourly",
      exposure: "public",
      image: { url: "registry.example/team/app:1.0.0", isPublic: true },
      port: 8080,
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] },
      ...spec,
    },
  };
}

/** A worker that is ready once it runs; override what a test is about. */
export function exampleWorker(
  ref: { namespace: string; name: string },
  spec: Partial<Project["spec"]> = {},
): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: ref,
    spec: {
      type: "worker",
      name: "example",
      plan: "basic",
      paymentMode: "hourly",
      image: { url: "registry.example/team/worker:1.0.0", isPublic: true },
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      ...spec,
    },
  };
}

/** A job that runs every minute and keeps nothing; override what a test is about. */
export function exampleJob(
  ref: { namespace: string; name: string },
  spec: Partial<Project["spec"]> = {},
): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: ref,
    spec: {
      type: "job",
      name: "example",
      plan: "job-basic",
      paymentMode: "per_minute",
      image: { url: "registry.example/team/job:1.0.0", isPublic: true },
      storage: { persistent: false, capacity: 1 },
      job: { cron: "* * * * *" },
      ...spec,
    },
  };
}
