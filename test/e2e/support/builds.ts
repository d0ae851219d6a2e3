/** Projects from Git and their builds, through `/v1`. */
import { expect } from "vitest";
import { type apiClient, type CreatedProject, createProject, httpProject } from "./api.ts";
import { eventually } from "./eventually.ts";

type Call = ReturnType<typeof apiClient>;

export interface Build {
  readonly id: string;
  readonly status: "pending" | "building" | "success" | "failed" | "superseded";
  readonly branch: string;
  readonly commit_sha: string;
  readonly triggered_by: string;
  readonly error_code?: string;
  readonly error_message?: string;
}

export interface LogRead {
  readonly logs: readonly { readonly sequence: number; readonly message: string; readonly step?: string }[];
  readonly next_cursor: number;
  readonly finished: boolean;
  readonly truncated: boolean;
}

/** A legal body of `POST /v1/project` for an application from Git. */
export function gitProject(
  name: string,
  source: { connectionId: string; repositoryId: string },
  change: { source?: object; build?: object; config?: object } = {},
) {
  const body = httpProject(name, { image: undefined, ...change.config });
  return {
    ...body,
    config: {
      ...body.config,
      source: {
        connection_id: source.connectionId,
        repository_id: source.repositoryId,
        branch: "main",
        auto_deploy: true,
        ...change.source,
      },
      build: { runtime: "node", version: "24", start_command: "npm start", ...change.build },
    },
  };
}

/** Creates a project from Git. @returns it with its first build's id; throws when the answer is not 201 */
export const createGitProject = (
  call: Call,
  ...body: Parameters<typeof gitProject>
): Promise<CreatedProject & { readonly build_id: string }> =>
  createProject(call, gitProject(...body)) as Promise<CreatedProject & { readonly build_id: string }>;

export async function readBuild(call: Call, project: string, build: string): Promise<Build> {
  const { status, body } = await call<Build>("GET", `/v1/project/${project}/builds/${build}`);
  expect(status).toBe(200);
  return body.data as Build;
}

export async function listBuilds(call: Call, project: string): Promise<readonly Build[]> {
  const { status, body } = await call<Build[]>("GET", `/v1/project/${project}/builds?limit=50`);
  expect(status).toBe(200);
  return body.data ?? [];
}

/** Waits for a build's end, whatever it is. */
export const untilEnded = (call: Call, project: string, build: string, within = 240_000): Promise<Build> =>
  eventually(
    async () => {
      const read = await readBuild(call, project, build);
      expect(["success", "failed", "superseded"]).toContain(read.status);
      return read;
    },
    { within },
  );

/** The whole log of a build, read in pieces as a client does. */
export async function readLog(call: Call, project: string, build: string): Promise<LogRead["logs"]> {
  const lines: LogRead["logs"][number][] = [];
  for (let cursor = 0; ; ) {
    const path = `/v1/project/${project}/builds/${build}/logs?cursor=${cursor}&limit=500`;
    const { body } = await call<LogRead>("GET", path);
    const read = body.data as LogRead;
    if (read.logs.length === 0) {
      return lines;
    }
    lines.push(...read.logs);
    cursor = read.next_cursor;
  }
}

/** Waits for a build's success. @throws with its failure and the end of its log when it has another end */
export async function untilBuilt(
  call: Call,
  project: string,
  build: string,
  within?: number,
): Promise<Build> {
  const ended = await untilEnded(call, project, build, within);
  if (ended.status === "success") {
    return ended;
  }
  const log = (await readLog(call, project, build)).slice(-40).map(({ message }) => message);
  throw new Error(`build ${build} is ${ended.status}: ${JSON.stringify(ended)}\n${log.join("\n")}`);
}
