import { projectSpec } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { exampleSpec } from "../../../../test/kit/api-server/harness.ts";
import { newCredentials } from "../../databases/connection.ts";
import { planCreation } from "./plan-creation.ts";
import { type AwsLogin, awsErrors, awsRegistryOf } from "./registry-secrets.ts";

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
