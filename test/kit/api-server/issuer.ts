import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

/** A small OpenID Connect issuer on loopback: discovery, keys, and tokens of any kind, wrong ones too. */
export interface TestIssuer {
  url: string;
  /** Path of every request that it got. */
  requests: string[];
  /** While true, every answer is a 500. */
  broken: boolean;
  /** Makes a new key that signs from now on; `keepOld` continues to publish the previous ones. */
  rotate: (options?: { keepOld: boolean }) => Promise<void>;
  /** A signed token; `kid` replaces that of the key. */
  token: (claims?: JWTPayload, options?: { lifetime?: string | number; kid?: string }) => Promise<string>;
  /** The key that signs now, as it is published. */
  publicJwk: () => Record<string, unknown> & { kid: string };
  stop: () => Promise<void>;
}

export const AUDIENCE = "slipway-test";

export async function startIssuer(name: string, algorithm = "ES256"): Promise<TestIssuer> {
  let published: (Record<string, unknown> & { kid: string })[] = [];
  let privateKey: CryptoKey;
  let serial = 0;
  const requests: string[] = [];

  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    const answer = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (issuer.broken) {
      answer(500, {});
    } else if (request.url === "/.well-known/openid-configuration") {
      answer(200, { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` });
    } else if (request.url === "/keys") {
      answer(200, { keys: published });
    } else {
      answer(404, {});
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const issuer: TestIssuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    broken: false,
    rotate: async ({ keepOld } = { keepOld: false }) => {
      const pair = await generateKeyPair(algorithm, { extractable: true });
      privateKey = pair.privateKey;
      serial += 1;
      const jwk = { ...(await exportJWK(pair.publicKey)), kid: `${name}-${serial}`, use: "sig" };
      published = [jwk, ...(keepOld ? published : [])];
    },
    token: ({ ...claims } = {}, { lifetime = "5m", kid } = {}) =>
      new SignJWT({ iss: issuer.url, aud: AUDIENCE, sub: "someone", ...claims })
        .setProtectedHeader({ alg: algorithm, kid: kid ?? issuer.publicJwk().kid })
        .setIssuedAt()
        .setExpirationTime(lifetime)
        .sign(privateKey),
    publicJwk: () => published[0] as Record<string, unknown> & { kid: string },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  await issuer.rotate();
  return issuer;
}
