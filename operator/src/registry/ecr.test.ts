import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ecrLogin, RegistryLoginError } from "./ecr.ts";

/** Speaks the wire protocol of ECR's GetAuthorizationToken (AWS JSON 1.1), as far as a client sees it. */
let server: Server;
let answer: { status: number; body: unknown };
let seen: { authorization: string; target: string }[];

beforeEach(async () => {
  seen = [];
  server = createServer((request, response) => {
    const { authorization = "", "x-amz-target": target = "" } = request.headers;
    seen.push({ authorization, target: String(target) });
    request.resume().on("end", () => {
      response
        .writeHead(answer.status, { "content-type": "application/x-amz-json-1.1" })
        .end(JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const credentials = {
  accessKeyId: "AKIAEXAMPLE",
  secretAccessKey: "c4n4ry",
  region: "eu-west-1",
  accountId: "123456789012",
};
const login = (region = credentials.region) => {
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return ecrLogin({ endpoint })({ ...credentials, region }, new AbortController().signal);
};
const failure = async (): Promise<RegistryLoginError> => {
  const error = await login().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(RegistryLoginError);
  return error as RegistryLoginError;
};
const token = (expiresAt: number) => ({
  authorizationData: [{ authorizationToken: Buffer.from("AWS:pa:ss").toString("base64"), expiresAt }],
});

describe("ecrLogin", () => {
  it("signs the request and reads user, password, end and host", async () => {
    answer = { status: 200, body: token(1_800_000_000) };
    await expect(login()).resolves.toEqual({
      host: "123456789012.dkr.ecr.eu-west-1.amazonaws.com",
      username: "AWS",
      password: "pa:ss",
      expiresAt: new Date(1_800_000_000_000),
    });
    expect(seen).toEqual([
      {
        target: "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
        authorization: expect.stringMatching(
          /^AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE\/\d{8}\/eu-west-1\/ecr\/aws4_request/,
        ),
      },
    ]);
  });

  it("knows the host of a region in China", async () => {
    answer = { status: 200, body: token(1_800_000_000) };
    await expect(login("cn-north-1")).resolves.toMatchObject({
      host: "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn",
    });
  });

  it("reports a refusal, with nothing secret in it", async () => {
    answer = { status: 400, body: { __type: "UnrecognizedClientException", message: "no c4n4ry" } };
    const error = await failure();
    expect(error).toMatchObject({ refused: true, message: "AWS refuses the credentials of the registry." });
    expect(error.message).not.toContain("c4n4ry");
  });

  it("reports an outage", async () => {
    answer = { status: 503, body: {} };
    expect(await failure()).toMatchObject({ refused: false, message: "AWS does not answer." });
  });

  it("reports an answer without a token", async () => {
    answer = { status: 200, body: { authorizationData: [] } };
    expect(await failure()).toMatchObject({ refused: false, message: "AWS answered without a token." });
  });
});
