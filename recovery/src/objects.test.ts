import { customResource, resources } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { isKept } from "./objects.ts";

const namespace = "slipway-org-a";
const secret = (more: object, type = "Opaque") => ({ metadata: { name: "a", namespace, ...more }, type });
const service = (place: string, type: string) => ({
  metadata: { name: "a", namespace: place },
  spec: { type },
});
const owned = (kind: string) => ({
  ownerReferences: [{ kind, controller: true, apiVersion: "v1", name: "a", uid: "a" }],
});
const build = customResource("slipway.dev", "v1alpha1", "builds", "Build");
const backup = customResource("slipway.dev", "v1alpha1", "backups", "Backup");
const withStatus = (status: object) => ({ metadata: { name: "a", namespace }, status });

test.for([
  ["a project's credentials", resources.secrets, secret(owned("Project")), true],
  ["a Secret that somebody has created", resources.secrets, secret({}), true],
  [
    "a Secret with a certificate that somebody has created",
    resources.secrets,
    secret({}, "kubernetes.io/tls"),
    true,
  ],
  [
    "a certificate that the operator issues again",
    resources.secrets,
    secret(owned("Project"), "kubernetes.io/tls"),
    false,
  ],
  ["the addresses of a backup's Job", resources.secrets, secret(owned("Job")), false],
  [
    "a token of a service account",
    resources.secrets,
    secret({}, "kubernetes.io/service-account-token"),
    false,
  ],
  ["a Secret of another namespace", resources.secrets, secret({ namespace: "kube-system" }), false],
  [
    "an object that is being deleted",
    resources.secrets,
    secret({ deletionTimestamp: "2026-01-01T00:00:00Z" }),
    false,
  ],
  ["a Service with a port of the nodes", resources.services, service(namespace, "NodePort"), true],
  ["a Service that the operator creates again", resources.services, service(namespace, "ClusterIP"), false],
  ["a Service of another namespace", resources.services, service("kube-system", "NodePort"), false],
  ["a build that has ended", build, withStatus({ phase: "success" }), true],
  ["a build whose pod is gone", build, withStatus({ phase: "building" }), false],
  ["a backup in a bucket", backup, withStatus({ phase: "succeeded", bucket: {} }), true],
  ["a backup on a volume", backup, withStatus({ phase: "succeeded" }), false],
  ["a backup that was being made", backup, withStatus({ phase: "running", bucket: {} }), false],
] as const)("%s", ([, resource, object, kept]) => {
  expect(isKept(resource, object as unknown as Parameters<typeof isKept>[1])).toBe(kept);
});
