import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";

export interface GitServerOptions {
  /** Folder of the one repository, served as `/repository.git`. */
  folder: string;
  /** Folders of others that anybody may read, by path. */
  others?: Record<string, string>;
  /** Required `user:password`; anybody may read without. */
  credential?: string;
  /** Uses the first version of the protocol: only tips can be fetched. */
  isOld?: boolean;
  /** Sends every request elsewhere. */
  redirect?: string;
}

/** Serves a repository over HTTP, by git's own `http-backend`. */
export class GitServer {
  readonly #server: Server;
  /** The requests: path and `Authorization`. */
  readonly requests: { url: string; authorization: string | undefined }[] = [];

  private constructor(options: GitServerOptions) {
    this.#server = createServer((request, response) => this.#answer(options, request, response));
  }

  static async start(options: GitServerOptions): Promise<GitServer> {
    const server = new GitServer(options);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/repository.git`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #answer(options: GitServerOptions, request: IncomingMessage, response: ServerResponse): void {
    const { others = {}, isOld, redirect } = options;
    const { authorization } = request.headers;
    const url = request.url ?? "";
    this.requests.push({ url, authorization });
    const [path = "/repository.git", other] =
      Object.entries(others).find(([each]) => url.startsWith(`${each}/`)) ?? [];
    const folder = other ?? options.folder;
    const credential = other === undefined ? options.credential : undefined;
    if (redirect !== undefined) {
      response.writeHead(302, { location: `${redirect}${url.replace("/repository.git", "")}` }).end();
      return;
    }
    if (credential !== undefined && authorization !== `Basic ${Buffer.from(credential).toString("base64")}`) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
      return;
    }
    const { pathname, searchParams } = new URL(url, "http://localhost");
    const child = spawn("git", ["http-backend"], {
      env: {
        PATH: process.env.PATH,
        GIT_PROJECT_ROOT: dirname(folder),
        GIT_HTTP_EXPORT_ALL: "1",
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
        PATH_INFO: pathname.replace(path, `/${folder.split("/").at(-1)}/.git`),
        QUERY_STRING: searchParams.toString(),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        REMOTE_ADDR: "127.0.0.1",
        ...(request.headers["content-encoding"] === "gzip" ? { HTTP_CONTENT_ENCODING: "gzip" } : {}),
        ...(isOld ? {} : { GIT_PROTOCOL: String(request.headers["git-protocol"] ?? "") }),
      },
    });
    request.pipe(child.stdin);
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.on("close", () => {
      const whole = Buffer.concat(chunks);
      const end = whole.indexOf("\r\n\r\n");
      const headers = whole.subarray(0, end).toString("latin1").split("\r\n");
      const status = headers.find((line) => line.startsWith("Status:"));
      for (const line of headers.filter((each) => !each.startsWith("Status:"))) {
        const colon = line.indexOf(":");
        response.setHeader(line.slice(0, colon), line.slice(colon + 1).trim());
      }
      response
        .writeHead(status === undefined ? 200 : Number(status.split(" ")[1]))
        .end(whole.subarray(end + 4));
    });
  }
}
