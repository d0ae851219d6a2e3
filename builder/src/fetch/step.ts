/** Fetches one commit of a repository into a folder, and nothing else of it. */

import { mkdir } from "node:fs/promises";
import type { ExitResult } from "../exec.ts";
import { classify, forProvider } from "../failures/classify.ts";
import { type FailureCode, StepError } from "../failures/codes.ts";
import type { Log } from "../log/writer.ts";
import type { FetchTask } from "../task.ts";
import { Git, type GitOptions, listTree, type TreeEntry, wantedRef } from "./git.ts";
import { fetchLargeFiles } from "./lfs.ts";
import { MAX_SUBMODULES, type Submodule, submoduleFolder, submodulesOf } from "./submodules.ts";

export interface FetchContext {
  task: FetchTask;
  log: Log;
  credential?: GitOptions["credential"];
  /** Empty folder that the files go to. */
  target: string;
  scratch: string;
  signal?: AbortSignal;
}

export interface Fetched {
  commitSha: string;
  /** First line of the commit's message, at most 256 characters. */
  commitMessage: string;
}

/** Commits that are searched when a server returns none but tips. */
const DEEPER = 500;

/** What may still be fetched, over a repository and its submodules. */
interface Budget {
  bytes: number;
  files: number;
  submodules: number;
}

/** @throws StepError when the commit cannot be had, or is more than a build takes */
export async function fetchSource(context: FetchContext): Promise<Fetched> {
  const { maxBytes, maxFiles } = context.task;
  return fetchRepository(context, { bytes: maxBytes, files: maxFiles, submodules: MAX_SUBMODULES });
}

async function fetchRepository(context: FetchContext, budget: Budget): Promise<Fetched> {
  const { task, log, target, credential, scratch, signal } = context;
  const { url, address, caFile } = task;
  const output = log.output();
  const git = await Git.open({
    url,
    address,
    caFile,
    maxBytes: task.maxBytes,
    credential,
    scratch,
    signal,
    onOutput: (chunk) => output.push(chunk),
  });
  try {
    const commitSha = await fetchCommit(git, context);
    output.end();
    const entries = await listTree(git, commitSha);
    take(entries, budget, task);
    const submodules = await submodulesOf(git, { commitSha, url, entries });
    await mkdir(target, { recursive: true });
    const checkout = await git.run(["checkout", "--quiet", "--force", "--detach", commitSha], {
      workTree: target,
      timeoutMs: task.timeoutSeconds * 1000,
    });
    output.end();
    if (checkout.code !== 0) {
      throw StepError.of("BUILD_FAILED_UNCLASSIFIED", { said: checkout.text.trim().split("\n").at(-1) });
    }
    const server = { url, address, caFile, credential };
    await fetchLargeFiles({ entries, task, server, target, scratch, log, signal });
    for (const submodule of submodules) {
      await fetchSubmodule(submodule, context, budget);
    }
    const commitMessage = ((await git.read(["log", "-1", "--format=%s", commitSha])) ?? "").slice(0, 256);
    const bytes = entries.reduce((sum, { size }) => sum + size, 0);
    log.info(`Fetched ${commitSha.slice(0, 12)}: ${entries.length} files, ${Math.ceil(bytes / 1024)} KiB.`);
    return { commitSha, commitMessage };
  } finally {
    output.end();
    await git.close();
  }
}

/** @throws StepError that names the submodule, unless it is the server that cannot be reached or all of it that is too large */
async function fetchSubmodule(
  { path, commitSha, url }: Submodule,
  context: FetchContext,
  budget: Budget,
): Promise<void> {
  budget.submodules -= 1;
  if (budget.submodules < 0) {
    throw StepError.of("GIT_SUBMODULE_UNAVAILABLE", {
      name: path,
      said: `At most ${MAX_SUBMODULES} are fetched.`,
    });
  }
  const { branch: _branch, tag: _tag, ...rest } = context.task;
  const task = { ...rest, commitSha, url, maxBytes: Math.max(1, budget.bytes) };
  const target = await submoduleFolder(context.target, path);
  try {
    await fetchRepository({ ...context, task, target, credential: undefined }, budget);
  } catch (error) {
    const code = error instanceof StepError ? error.failure.code : undefined;
    const said = code && REFUSALS[code];
    if (said === undefined) {
      throw error;
    }
    throw StepError.of("GIT_SUBMODULE_UNAVAILABLE", { name: path, said });
  }
}

const REFUSED = "The server does not show it without a credential.";
const GONE = "The server has not the commit that it is at.";
/** Messages for failures to fetch a submodule; others keep their own. */
const REFUSALS: Partial<Record<FailureCode, string>> = {
  GIT_REPOSITORY_AUTH_FAILED: REFUSED,
  GITHUB_REPOSITORY_AUTH_FAILED: REFUSED,
  GITHUB_ACCESS_TOKEN_MISSING: REFUSED,
  GIT_COMMIT_UNAVAILABLE: GONE,
  GITHUB_COMMIT_UNAVAILABLE: GONE,
};

/** Requests the commit itself; from a server that returns tips alone the ref is requested, and its history searched. */
async function fetchCommit(git: Git, { task, log }: FetchContext): Promise<string> {
  const ref = wantedRef(task);
  const timeoutMs = task.timeoutSeconds * 1000;
  const fetch = (what: string, depth: number): Promise<ExitResult> =>
    git.run(
      [
        "fetch",
        "--quiet",
        `--depth=${depth}`,
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--end-of-options",
        task.url,
        `+${what}:refs/slipway/fetched`,
      ],
      { timeoutMs },
    );
  const { commitSha } = task;
  log.info(`Fetching ${commitSha ?? ref} of ${task.url}.`);
  let ended = await fetch(commitSha ?? ref ?? "HEAD", 1);
  const isRefused = /not our ref|unadvertised object|couldn't find remote ref/i.test(ended.text);
  if (commitSha !== undefined && ref !== undefined && ended.code !== 0 && isRefused) {
    ended = await fetch(ref, DEEPER);
  }
  if (ended.code !== 0) {
    throw failedFetch(ended, task, git);
  }
  const found = await git.read([
    "rev-parse",
    "--verify",
    "--quiet",
    `${commitSha ?? "refs/slipway/fetched"}^{commit}`,
  ]);
  if (found === undefined) {
    throw StepError.of(forProvider("GIT_COMMIT_UNAVAILABLE", task.provider), { name: commitSha ?? ref });
  }
  return found;
}

/** What a program says when a file would grow past its limit (SIGXFSZ), as a shell reports it. */
const TOO_LARGE = 153;

function failedFetch({ text, timedOut, code }: ExitResult, task: FetchTask, git: Git): StepError {
  if (code === TOO_LARGE || /signal 25|File too large/i.test(text)) {
    return StepError.of("GIT_REPOSITORY_TOO_LARGE", {
      name: `at most ${megabytes(task.maxBytes)} are fetched`,
    });
  }
  const hasCredential = git.hasCredential;
  const ref = task.commitSha ?? task.tag ?? task.branch ?? "";
  return new StepError(
    classify({ step: "fetch", provider: task.provider, hasCredential, ref, text, timedOut }),
  );
}

/** Before any file is written: takes what a repository has from what is left. @throws StepError when that is not enough */
function take(entries: readonly TreeEntry[], budget: Budget, { maxBytes, maxFiles }: FetchTask): void {
  const bytes = entries.reduce((sum, { size }) => sum + size, 0);
  budget.files -= entries.length;
  budget.bytes -= bytes;
  if (budget.files < 0) {
    throw StepError.of("GIT_REPOSITORY_TOO_LARGE", { name: `${entries.length} files, at most ${maxFiles}` });
  }
  if (budget.bytes < 0) {
    const name = `${megabytes(bytes)}, at most ${megabytes(maxBytes)}`;
    throw StepError.of("GIT_REPOSITORY_TOO_LARGE", { name });
  }
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
