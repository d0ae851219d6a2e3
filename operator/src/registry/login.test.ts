import {
  ConditionSet,
  KubeClient,
  type KubernetesObject,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { labels, type ProjectConditionCatalog } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { type AwsCredentials, RegistryLoginError } from "./ecr.ts";
import { ensureRegistryLogin, registrySecretName } from "./login.ts";

const namespace = "slipway-org-alpha";
const HOURS = 3_600_000;
const project = exampleProject(
  { namespace, name: "shop" },
  {
    image: {
      url: "1.dkr.ecr.eu-west-1.amazonaws.com/shop:1",
      isPublic: false,
      awsCredentialsRef: { name: "aws" },
    },
  },
);
project.metadata.uid = "uid-1";

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let secrets: Store;
let calls: AwsCredentials[];
let failing: RegistryLoginError | undefined;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock();
  secrets = new Store({ transform: dropSecretData });
  secrets.replace([], "0");
  calls = [];
  failing = undefined;
  const data = { accessKeyId: "AKIA", secretAccessKey: "s3cr3t", region: "eu-west-1", accountId: "1" };
  await client.create(resources.secrets, secret("aws", data));
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

const secret = (name: string, data: Record<string, string>): KubernetesObject =>
  ({
    metadata: { name, namespace, labels: { [labels.project]: "shop" } },
    type: "slipway.dev/aws-registry",
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    ),
  }) as KubernetesObject;

const ensure = (of = project, isUsed?: (name: string) => Promise<boolean>) => {
  const conditions = new ConditionSet<ProjectConditionCatalog>([], { now: clock.now() });
  const login = async (credentials: AwsCredentials) => {
    calls.push(credentials);
    if (failing) {
      throw failing;
    }
    return {
      host: "1.dkr.ecr.eu-west-1.amazonaws.com",
      username: "AWS",
      password: `token-${calls.length}`,
      expiresAt: new Date(clock.now().getTime() + 12 * HOURS),
    };
  };
  const done = ensureRegistryLogin(
    of,
    conditions,
    { client, clock, secrets, login, isUsed },
    new AbortController().signal,
  );
  return done.then((renewInMs) => ({ renewInMs, condition: conditions.get("RegistryReady")?.reason }));
};
const pullPassword = async () => {
  const ref = { namespace, name: registrySecretName(project) };
  const live = await client.get<KubernetesObject & { data: Record<string, string> }>(resources.secrets, ref);
  const config = Buffer.from(live.data[".dockerconfigjson"] ?? "", "base64").toString();
  return JSON.parse(config).auths["1.dkr.ecr.eu-west-1.amazonaws.com"].password as string;
};

describe("ensureRegistryLogin", () => {
  it("does nothing for a project without AWS credentials", async () => {
    const other = exampleProject({ namespace, name: "other" });
    await expect(ensure(other)).resolves.toEqual({ renewInMs: undefined, condition: undefined });
    expect(calls).toEqual([]);
  });

  // Shows: docs/applications.md#create: `auth_type` `aws`: a token is obtained and renewed before it
  it("logs in once, and again after two thirds of the token's life", async () => {
    await expect(ensure()).resolves.toEqual({ renewInMs: 8 * HOURS, condition: "RegistryLoggedIn" });
    await expect(ensure()).resolves.toMatchObject({ renewInMs: 8 * HOURS });
    expect(calls).toEqual([
      { accessKeyId: "AKIA", secretAccessKey: "s3cr3t", region: "eu-west-1", accountId: "1" },
    ]);
    expect(await pullPassword()).toBe("token-1");
    await clock.advance(8 * HOURS + 1);
    await ensure();
    expect(await pullPassword()).toBe("token-2");
  });

  it("continues with the token it has while AWS is unavailable, and reports it once it has expired", async () => {
    await ensure();
    failing = new RegistryLoginError("AWS does not answer.", { refused: false, cause: undefined });
    await clock.advance(9 * HOURS);
    await expect(ensure()).resolves.toEqual({ renewInMs: 60_000, condition: "RegistryLoggedIn" });
    await clock.advance(4 * HOURS);
    await expect(ensure()).rejects.toMatchObject({
      reason: "RegistryLoginFailed",
      condition: "RegistryReady",
      message: "AWS does not answer.",
    });
    failing = undefined;
    await expect(ensure()).resolves.toMatchObject({ condition: "RegistryLoggedIn" });
  });

  it("logs in again when the project names other credentials", async () => {
    await ensure();
    const data = { accessKeyId: "AKIB", secretAccessKey: "x", region: "eu-west-1", accountId: "1" };
    await client.create(resources.secrets, secret("aws2", data));
    const image = { url: "a/b", isPublic: false, awsCredentialsRef: { name: "aws2" } };
    const changed = { ...project, spec: { ...project.spec, image } };
    await ensure(changed);
    expect(calls.map(({ accessKeyId }) => accessKeyId)).toEqual(["AKIA", "AKIB"]);
  });

  it("names the keys that a Secret lacks", async () => {
    await client.create(resources.secrets, secret("half", { region: "eu-west-1" }));
    const image = { url: "a/b", isPublic: false, awsCredentialsRef: { name: "half" } };
    await expect(ensure({ ...project, spec: { ...project.spec, image } })).rejects.toMatchObject({
      message: "The Secret half lacks: accessKeyId, secretAccessKey, accountId.",
    });
    expect(calls).toEqual([]);
  });

  it("reads no credentials from a Secret of another type", async () => {
    const plain = { ...secret("plain", { region: "eu-west-1" }), type: "Opaque" } as KubernetesObject;
    await client.create(resources.secrets, plain);
    const image = { url: "a/b", isPublic: false, awsCredentialsRef: { name: "plain" } };
    await expect(ensure({ ...project, spec: { ...project.spec, image } })).rejects.toMatchObject({
      message: "The Secret plain is not of type slipway.dev/aws-registry.",
    });
  });

  it("leaves somebody else's Secret of its name unchanged", async () => {
    await client.create(resources.secrets, secret(registrySecretName(project), { own: "data" }));
    await expect(ensure()).rejects.toMatchObject({ reason: "ChildConflict" });
  });

  it("is removed from a project that has another kind of image now", async () => {
    await ensure();
    const ref = { namespace, name: registrySecretName(project) };
    const image = { url: "nginx:1.29", isPublic: true };
    await ensure({ ...project, spec: { ...project.spec, image } });
    expect(await client.getOrUndefined(resources.secrets, ref)).toBeUndefined();
  });

  it("is kept as long as what has begun may still pull with it", async () => {
    await ensure();
    const ref = { namespace, name: registrySecretName(project) };
    const changed = { ...project, spec: { ...project.spec, image: { url: "nginx:1.29", isPublic: true } } };
    await expect(ensure(changed, async (name) => name === ref.name)).resolves.toEqual({ renewInMs: 60_000 });
    expect(await client.getOrUndefined(resources.secrets, ref)).toBeDefined();
    await expect(ensure(changed, async () => false)).resolves.toEqual({ renewInMs: undefined });
    expect(await client.getOrUndefined(resources.secrets, ref)).toBeUndefined();
  });
});
