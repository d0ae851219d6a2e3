import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { type GitServer, gitUrl } from "./git-server.ts";

/** What the Git server answered: JSON where it was JSON. */
export interface GitAnswer {
  status: number;
  body: unknown;
}

/**
 * Calls the Git server's API over TLS.
 * @param path below `/api/v1`
 * @param token of the user who calls; nobody's when undefined
 */
export async function callGit(
  server: GitServer,
  token: string | undefined,
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  body?: object,
): Promise<GitAnswer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const options = {
    method,
    ca: await readFile(server.authority),
    headers: {
      ...(token === undefined ? {} : { authorization: `token ${token}` }),
      ...(text === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
    },
    timeout: 30_000,
    agent: false,
  };
  return new Promise((resolve, reject) => {
    const call = request(`${gitUrl(server)}/api/v1${path}`, options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        const content = Buffer.concat(chunks).toString();
        const isJson = answer.headers["content-type"]?.includes("json") === true && content !== "";
        resolve({ status: answer.statusCode ?? 0, body: isJson ? JSON.parse(content) : content });
      });
    });
    call.on("timeout", () => call.destroy(new Error("the Git server did not answer within 30 s")));
    call.on("error", reject);
    call.end(text);
  });
}
