import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../../hack/lib/paths.ts";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { jobSpec } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import type { Subjects } from "../../../test/kit/sdk/operation.ts";
import { operations } from "../../../test/kit/sdk/operations.ts";
import { createSlipway } from "./client.ts";
import { SlipwayError } from "./error.ts";
import { eachDeployment, eachProject } from "./pages.ts";

/** Every operation of a real API server, over a real kube-apiserver and PostgreSQL. No operator runs. */

interface Document {
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;
}

let harness: RealHarness;
let subjects: Subjects;
let document: Document;
/** The request that was sent last, and its status. */
let last: { method: string; path: string; status: number };

beforeAll(async () => {
  harness = await startRealHarness();
  const url = await harness.app.listen({ port: 0, host: "127.0.0.1" });
  const { id, headers } = await harness.organization();
  await harness.project(id, "papp", { plan: "basic" });
  await harness.project(id, "pjob", jobSpec);
  await harness.project(id, "pdatabase", databaseSpec("postgresql"));
  const slipway = createSlipway({
    url,
    apiKey: headers["x-api-key"],
    retries: { attempts: 1 },
    fetch: async (request) => {
      const response = await fetch(request);
      last = { method: request.method, path: new URL(request.url).pathname, status: response.status };
      return response;
    },
  });
  const absent = { group: "", webhook: "", recipient: "" };
  subjects = { slipway, app: "papp", job: "pjob", database: "pdatabase", ...absent };
  document = (await slipway.GET("/v1/openapi.json")) as unknown as Document;
});
afterAll(() => harness?.close());

/** What became of a call: its status, and the code of a failure. */
const outcomeOf = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => String(last.status),
    (error: unknown) => {
      if (error instanceof SlipwayError) {
        return `${error.status} ${error.code}`;
      }
      throw error;
    },
  );

/** The operation of the document that a request was of. */
function operationOf({ method, path }: { method: string; path: string }) {
  const matching = Object.entries(document.paths)
    .filter(([template]) => new RegExp(`^${template.replaceAll(/\{[^}]+\}/g, "[^/]+")}$`).test(path))
    // The one with the fewest parameters, as the server's router has it.
    .sort(([one], [other]) => one.split("{").length - other.split("{").length);
  return matching.map(([, methods]) => methods[method.toLowerCase()]).find((found) => found !== undefined);
}

describe("the table of operations", () => {
  it("has every operation of the server's document, and no other", () => {
    const ids = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(ids.length).toBeGreaterThan(100);
    expect(Object.keys(operations).sort()).toEqual(ids.sort());
  });
});

describe("a call of the SDK", () => {
  it.each(Object.entries(operations))("%s reaches its operation", async (id, { call, answer }) => {
    const outcome = await outcomeOf(call(subjects));
    expect(`${id}: ${outcome}`).toBe(`${id}: ${answer}`);
    const operation = operationOf(last);
    expect(operation?.operationId).toBe(id);
    expect(Object.keys(operation?.responses ?? {})).toContain(answer.slice(0, 3));
  });
});

describe("pages", () => {
  it("are read to their end", async () => {
    const { id, headers } = await harness.organization();
    for (let n = 0; n < 3; n += 1) {
      await harness.project(id, `pmany${n}`);
    }
    const slipway = createSlipway({ url: harness.app.listeningOrigin, apiKey: headers["x-api-key"] });
    const ids: string[] = [];
    for await (const project of eachProject(slipway, { type: "http" })) {
      ids.push(project.id);
    }
    expect(ids.sort()).toEqual(["pmany0", "pmany1", "pmany2"]);
    expect(await eachDeployment(slipway, "pmany0").next()).toEqual({ done: true, value: undefined });
  });
});

describe("the program of the README", () => {
  it("prints plans, projects and a failure's code", async () => {
    const { id, headers } = await harness.organization();
    await harness.project(id, "preadme", { name: "shop-front" });
    const readme = await readFile(join(import.meta.dirname, "../README.md"), "utf8");
    const [, program = ""] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? [];
    const folder = await mkdtemp(join(tmpdir(), "slipway-sdk-"));
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "program.mts"), program);
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, "program.mts")], {
      env: {
        ...process.env,
        SLIPWAY_URL: harness.app.listeningOrigin,
        SLIPWAY_API_KEY: headers["x-api-key"],
      },
    });
    await rm(folder, { recursive: true });
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^plans [1-9]/),
      expect.stringMatching(/^shop-front /),
      "404 PROJECT_NOT_FOUND 0",
      "",
    ]);
  });
});
