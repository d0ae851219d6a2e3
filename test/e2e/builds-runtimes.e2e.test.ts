/** An application of each runtime that the stack has a base image for, from its sources to an answer through the ingress. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildsRegistryHost } from "../../hack/cluster/addresses.ts";
import { casesToRun } from "../kit/long.ts";
import { apiClient, deleteProjects, uniqueName } from "./support/api.ts";
import { createGitProject, untilBuilt } from "./support/builds.ts";
import { eventually } from "./support/eventually.ts";
import { connectRepository, createRepository, type Files, type Repository } from "./support/git.ts";
import { throughIngress } from "./support/ingress.ts";

const call = apiClient();
const made: string[] = [];
let repository: Repository | undefined;
afterAll(async () => {
  await deleteProjects(call, made);
  await repository?.remove();
});

interface Case {
  readonly what: string;
  readonly folder: string;
  readonly files: Files;
  readonly build: object;
  readonly answers: string;
  /** Only with --long. */
  readonly isLong?: true;
}

const about = { name: "app", version: "1.0.0" };
const cases: readonly Case[] = [
  {
    what: "Node with a dependency from npm",
    folder: "node",
    files: {
      "package.json": JSON.stringify({
        ...about,
        dependencies: { ms: "2.1.3" },
        scripts: { start: "node server.js" },
      }),
      "package-lock.json": JSON.stringify({
        ...about,
        lockfileVersion: 3,
        requires: true,
        packages: {
          "": { ...about, dependencies: { ms: "2.1.3" } },
          "node_modules/ms": {
            version: "2.1.3",
            resolved: "https://registry.npmjs.org/ms/-/ms-2.1.3.tgz",
            integrity:
              "sha512-6FlzubTLZG3J2a/NVCAleEhjzq5oxgHyaCU9yYXvcLsvoVaHJq/s5xXI6/XXP6tz7R9xAOtHnSO/tXtF3WRTlA==",
          },
        },
      }),
      "server.js": `require("node:http").createServer((_, answer) => answer.end("node " + require("ms")("2 days"))).listen(process.env.PORT ?? 8080);\n`,
    },
    build: { runtime: "node", version: "24" },
    answers: "node 172800000",
  },
  {
    what: "Python with a dependency from PyPI",
    folder: "python",
    files: {
      "requirements.txt": "itsdangerous==2.2.0\n",
      "main.py": `import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from itsdangerous import Serializer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(("python " + Serializer("key").loads(Serializer("key").dumps("signed"))).encode())

HTTPServer(("", int(os.environ.get("PORT", "8080"))), Handler).serve_forever()
`,
    },
    build: { runtime: "python", version: "3.13", start_command: "python main.py" },
    answers: "python signed",
    isLong: true,
  },
  {
    what: "Go",
    folder: "go",
    files: {
      "go.mod": "module example.com/app\n\ngo 1.25\n",
      "main.go": `package main

import "net/http"

func main() {
	panic(http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("go")) })))
}
`,
    },
    build: { runtime: "go", version: "1.25" },
    answers: "go",
    // Compiles the standard library.
    isLong: true,
  },
  {
    what: "a static page",
    folder: "static",
    files: { "index.html": "<!doctype html><title>static</title>\n" },
    build: { runtime: "static" },
    answers: "<!doctype html><title>static</title>\n",
  },
  {
    what: "a Dockerfile",
    folder: "docker",
    files: {
      Dockerfile: `FROM ${buildsRegistryHost}/base/node:24
COPY server.js /server.js
USER 1000:1000
CMD ["node", "/server.js"]
`,
      "server.js": `require("node:http").createServer((_, answer) => answer.end("docker")).listen(8080);\n`,
    },
    build: { runtime: "dockerfile" },
    answers: "docker",
    // Tests of faults and of builder backends build such a one.
    isLong: true,
  },
];

describe("an application of", () => {
  let source: { connectionId: string; repositoryId: string };
  beforeAll(async () => {
    const files = cases.flatMap(({ folder, files }) =>
      Object.entries(files).map(([name, content]) => [`${folder}/${name}`, content]),
    );
    repository = await createRepository(uniqueName("runtimes"), Object.fromEntries(files));
    source = await connectRepository(repository);
  });

  // Shows: docs/builds.md#tested-on-the-stack: applications in Node, Python (`--long`), Go (`--long`), static files
  test.concurrent.each(casesToRun(cases))(
    "$what is built and served",
    { timeout: 600_000 },
    async ({ folder, build, answers }) => {
      const created = await createGitProject(call, uniqueName(folder), source, {
        source: { auto_deploy: false },
        build: { version: undefined, start_command: undefined, context_path: folder, ...build },
      });
      made.push(created.project_id);
      await untilBuilt(call, created.project_id, created.build_id, 500_000);
      await eventually(async () => {
        expect(await throughIngress(created.domain)).toEqual({ status: 200, text: answers });
      });
    },
  );
});
