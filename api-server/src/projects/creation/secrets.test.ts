import { projectSpec } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { exampleSpec } from "../../../../test/kit/api-server/harness.ts";
import { newCredentials } from "../../databases/connection.ts";
import { planCreation } from "./plan-creation.ts";
import { type AwsLogin, awsErrors, awsRegistryOf, envShards, pullSecret, registryOf } from "./secrets.ts";

const bytesOf = (data: Record<string, string>) =>
  Object.entries(data).reduce((sum, [name, value]) => sum + Buffer.byteLength(name + value), 0);

describe("envShards", () => {
  it("creates no Secret without variables", () => {
    expect(envShards("p1", [])).toEqual([]);
  });

  it("names the same set the same, in any order, and another value differently", () => {
    const a = { name: "A", value: "1" };
    const b = { name: "B", value: "2" };
    const names = (...variables: (typeof a)[]) => envShards("p1", variables).map((shard) => shard.name);
    expect(names(a, b)).toEqual(names(b, a));
    expect(names(a, b)).not.toEqual(names(a, { ...b, value: "3" }));
    expect(names(a, b)[0]).toMatch(/^p1-env-[0-9a-f]{12}$/);
    expect(envShards("p2", [a])[0]?.name.slice(3)).not.toBe(envShards("p1", [a])[0]?.name.slice(3));
  });

  it("stores the most that the specification allows below a Secret's size, losing nothing", () => {
    const variables = Array.from({ length: 50 }, (_, index) => ({
      name: `N${index}`,
      value: "ü".repeat(32_760),
    }));
    const shards = envShards("p1", variables);
    for (const shard of shards) {
      expect(bytesOf(shard.stringData)).toBeLessThan(1_000_000);
    }
    const all = Object.assign({}, ...shards.map((shard) => shard.stringData));
    expect(all).toEqual(Object.fromEntries(variables.map(({ name, value }) => [name, value])));
    expect(new Set(shards.map((shard) => shard.name)).size).toBe(shards.length);
  });
});

describe("pullSecret", () => {
  it.each([
    ["nginx", "https://index.docker.io/v1/"],
    ["team/app:1", "https://index.docker.io/v1/"],
    ["docker.io/library/nginx", "https://index.docker.io/v1/"],
    ["registry.example.com/team/app@sha256:abc", "registry.example.com"],
    ["10.0.0.1:5000/app", "10.0.0.1:5000"],
    ["localhost/app", "localhost"],
  ])("of %s logs in to %s", (image, registry) => {
    expect(registryOf(image)).toBe(registry);
    const login = { username: "u", token: "t" };
    const { auths } = JSON.parse(pullSecret("p1", image, login).dockerConfigJson);
    expect(auths[registry]).toEqual({ username: "u", password: "t", auth: "dTp0" });
  });
});

const login: AwsLogin = {
  access_key_id: "AKIAIOSFODNN7EXAMPLE",
  secret_access_key: "s3cr3t/with+signs",
  region: "eu-west-1",
  account_id: "123456789012",
};
const image = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/shop:1";

describe("awsErrors", () => {
  it.each([
    [image, login],
    ["123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/shop:1", { ...login, region: "cn-north-1" }],
    ["123456789012.dkr.ecr.us-gov-west-1.amazonaws.com/shop:1", { ...login, region: "us-gov-west-1" }],
  ])("takes %s", (url, one) => {
    expect(awsErrors(url, one)).toEqual([]);
  });

  // Shows: docs/applications.md#create: `auth_type` `aws`: a token is obtained and renewed before it
  it.each([
    [image, { ...login, region: "Europe" }, ["config.image.authentication.aws.region"]],
    [image, { ...login, region: "eu-west-1.evil.example" }, ["config.image.authentication.aws.region"]],
    [image, { ...login, account_id: "123" }, ["config.image.authentication.aws.account_id"]],
    [image, { ...login, access_key_id: "key" }, ["config.image.authentication.aws.access_key_id"]],
    [image, { ...login, account_id: "210987654321" }, ["config.image.url"]],
    ["registry.example.com/shop:1", login, ["config.image.url"]],
    ["123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.example/shop:1", login, ["config.image.url"]],
    [
      "registry.example.com/shop:1",
      { ...login, region: "x", account_id: "y" },
      ["config.image.authentication.aws.account_id", "config.image.authentication.aws.region"],
    ],
  ])("%# refuses %s with %j", (url, one, fields) => {
    expect(
      awsErrors(url, one)
        .map(({ field }) => field)
        .sort(),
    ).toEqual(fields);
  });
});

it("becomes a Secret that the spec names, and nothing of it is in the spec", () => {
  const request = {
    spec: { ...exampleSpec, image: { url: image, isPublic: false } },
    envs: [],
    imageAuthentication: { auth_type: "aws" as const, aws: login },
  };
  const { project, secrets } = planCreation(
    request,
    { organizationId: "acme", projectId: "p1" },
    { zone: "apps.localhost", newCredentials },
  );
  const [secret] = secrets;
  expect(secrets).toHaveLength(1);
  expect(secret).toMatchObject({
    type: "slipway.dev/aws-registry",
    immutable: true,
    stringData: {
      accessKeyId: login.access_key_id,
      secretAccessKey: login.secret_access_key,
      region: "eu-west-1",
      accountId: "123456789012",
    },
  });
  expect(project.spec.image).toEqual({
    url: image,
    isPublic: false,
    awsCredentialsRef: { name: secret?.metadata.name },
  });
  expect(projectSpec.safeParse(project.spec).success).toBe(true);
  expect(JSON.stringify(project)).not.toContain("s3cr3t");
  expect(awsRegistryOf({ region: "eu-west-1", accountId: "123456789012" })).toBe(image.split("/")[0]);
});
