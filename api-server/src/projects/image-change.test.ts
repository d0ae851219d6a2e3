import { KubeClient } from "@slipway/controller-runtime";
import type { Project, ProjectSpec } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { requireCredentialsFor, withImage } from "./image-change.ts";

const NOW = "2026-03-01T12:00:00.000Z";
const image = { url: "registry.example.com/shop:1", isPublic: true };

describe("withImage", () => {
  it("sets another image and drops the pinned manifest", () => {
    const spec: ProjectSpec = { ...exampleSpec, image: { ...image, digest: `sha256:${"a".repeat(64)}` } };
    expect(withImage(spec, "registry.example.com/shop:2", NOW)).toEqual({
      ...exampleSpec,
      image: { ...image, url: "registry.example.com/shop:2" },
    });
  });

  it("deploys the same image again", () => {
    expect(withImage({ ...exampleSpec, image }, image.url, NOW)).toEqual({
      ...exampleSpec,
      image,
      restartedAt: NOW,
    });
  });

  it("keeps the credentials", () => {
    const secured = { ...image, isPublic: false, pullSecretRef: { name: "pull" } };
    expect(withImage({ ...exampleSpec, image: secured }, "registry.example.com/shop:2", NOW).image).toEqual({
      ...secured,
      url: "registry.example.com/shop:2",
    });
  });

  // Shows: docs/applications.md#project-settings: image: the same one is deployed again; a private one
  it("refuses a project that is built from Git", () => {
    expect(() => withImage({ ...exampleSpec, image: undefined }, image.url, NOW)).toThrow(
      expect.objectContaining({ status: 400, code: "PROJECT_TYPE_MISMATCH" }),
    );
  });
});

describe("requireCredentialsFor", () => {
  let apiserver: FakeApiserver;
  let kube: KubeClient;
  beforeEach(async () => {
    apiserver = await FakeApiserver.start();
    kube = KubeClient.forUrl(apiserver.url);
    const secret = (name: string, data: Record<string, string>) =>
      apiserver.etcd.create("v1/secrets", `org/${name}`, {
        metadata: { name, namespace: "org" },
        data: Object.fromEntries(
          Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
        ),
      });
    const auths = { "registry.example.com": {}, "other.example.com": {} };
    secret("pull", { ".dockerconfigjson": JSON.stringify({ auths }) });
    secret("broken", { ".dockerconfigjson": "{" });
    secret("aws", { region: "eu-west-1", accountId: "123456789012", accessKeyId: "A", secretAccessKey: "S" });
  });
  afterEach(async () => {
    await kube.close();
    await apiserver.stop();
  });

  const AWS = "123456789012.dkr.ecr.eu-west-1.amazonaws.com";
  const project = (url: string, refs: object): Project => ({
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "shop", namespace: "org" },
    spec: { ...exampleSpec, image: { url, isPublic: false, ...refs } },
  });
  const check = (refs: object, from: string, to: string) =>
    requireCredentialsFor(kube, project(to, refs), project(from, refs));
  const pull = { pullSecretRef: { name: "pull" } };
  const aws = { awsCredentialsRef: { name: "aws" } };

  it.each([
    ["the same registry", pull, "registry.example.com/a:1", "registry.example.com/b/c:2"],
    [
      "another registry that the credentials are for",
      pull,
      "registry.example.com/a:1",
      "other.example.com/a:1",
    ],
    ["a public image", {}, "registry.example.com/a:1", "docker.io/library/nginx"],
    ["the account's registry", aws, `${AWS}/a:1`, `${AWS}/b:2`],
  ])("lets %s pass", async (_name, refs, from, to) => {
    await expect(check(refs, from, to)).resolves.toBeUndefined();
  });

  it.each([
    ["a registry without credentials", pull, "registry.example.com/a:1", "third.example.com/a:1"],
    ["Docker Hub", pull, "registry.example.com/a:1", "library/nginx:1"],
    ["another port", pull, "registry.example.com/a:1", "registry.example.com:5000/a:1"],
    [
      "credentials that cannot be read",
      { pullSecretRef: { name: "broken" } },
      "a.example.com/a",
      "b.example.com/a",
    ],
    [
      "credentials that are deleted",
      { pullSecretRef: { name: "gone" } },
      "a.example.com/a",
      "b.example.com/a",
    ],
    ["another account", aws, `${AWS}/a:1`, "210987654321.dkr.ecr.eu-west-1.amazonaws.com/a:1"],
  ])("refuses %s", async (_name, refs, from, to) => {
    await expect(check(refs, from, to)).rejects.toMatchObject({
      status: 400,
      extra: { errors: [{ field: "image" }] },
    });
  });

  it("reports an outage", async () => {
    apiserver.failNext(({ path }) => path.endsWith("/pull"), { status: 500, times: 9 });
    await expect(check(pull, "a.example.com/a", "b.example.com/a")).rejects.toMatchObject({ status: 503 });
  });
});
