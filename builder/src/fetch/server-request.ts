/** Requests to the repository's own server beside git's: the same address, the same authority, nowhere else. */

import { readFile } from "node:fs/promises";
import { request as requestPlain } from "node:http";
import { type RequestOptions, request } from "node:https";
import { isIPv6 } from "node:net";
import type { Readable } from "node:stream";
import { authorities, type GitOptions } from "./git.ts";

export interface GitServer {
  /** Of the repository: its origin is the only one that is queried. */
  url: string;
  /** That its name was resolved to. */
  address?: string;
  caFile?: string;
  credential?: GitOptions["credential"];
}

export interface ServerRequest {
  method: "GET" | "POST";
  url: URL;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  signal: AbortSignal;
}

/** Whether an address is of the repository's own server. */
export const isSameOrigin = ({ url }: GitServer, other: URL): boolean => {
  const { protocol, host } = new URL(url);
  return other.protocol === protocol && other.host === host;
};

/**
 * One request; redirections are answers like others.
 * @throws Error when another server is requested, or none answers
 */
export async function requestServer(
  server: GitServer,
  { method, url, headers, body, signal }: ServerRequest,
): Promise<{ status: number; body: Readable }> {
  if (!isSameOrigin(server, url)) {
    throw new Error(`${url.host} is not the repository's own server`);
  }
  const { address, caFile } = server;
  const options: RequestOptions = {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }) },
    signal,
    agent: false,
    ...(caFile === undefined ? {} : { ca: await authorities(caFile) }),
    ...(address === undefined
      ? {}
      : {
          lookup: (_name, { all }, done) => {
            const family = isIPv6(address) ? 6 : 4;
            if (all) {
              done(null, [{ address, family }]);
            } else {
              done(null, address, family);
            }
          },
        }),
  };
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? request : requestPlain;
    const sent = send(url, options, (answer) => resolve({ status: answer.statusCode ?? 0, body: answer }));
    sent.on("error", reject);
    sent.end(body);
  });
}

/** The `Authorization` of a credential that is in files; none for a public repository. */
export async function authorization({ credential }: GitServer): Promise<Record<string, string>> {
  if (credential === undefined) {
    return {};
  }
  const [username, password] = await Promise.all([
    readFile(credential.usernameFile, "utf8"),
    readFile(credential.passwordFile, "utf8"),
  ]);
  const pair = `${username.trim()}:${password.trim()}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}
