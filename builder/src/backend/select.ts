/** Which engine makes an image: the first of those allowed that is seen to run here. */

import { readFile, rm, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { z } from "zod";
import type { Log } from "../log/writer.ts";
import { readPlain } from "../regular-file.ts";
import { type Engine, EngineUnavailable } from "./backend.ts";
import { type EngineName, type EngineSetting, engineNames } from "./names.ts";

const titles: Record<EngineName, string> = { buildkit: "BuildKit", buildah: "buildah" };

export interface ChooseOptions {
  setting: EngineSetting;
  /** Where it is written down which engine ran here: the next build need not try. */
  recordFile: string;
  log: Pick<Log, "info">;
  /** @throws EngineUnavailable */
  start(name: EngineName): Promise<Engine>;
  /** What the engine says in the place of an image; undefined when it can make one. */
  attempt(engine: Engine): Promise<string | undefined>;
  /** What the rights of this process are known by. */
  conditions: string;
  now(): Date;
}

/** For this long a trial counts: a profile of the node may change without a sign of it. */
const RECORD_MS = 24 * 3_600_000;
const MAX_RECORD_BYTES = 16 * 1024;

const record = z.strictObject({ conditions: z.string(), engine: z.enum(engineNames), at: z.iso.datetime() });

/** Starts the engine of a build, and names it in the log. @throws EngineUnavailable that tells what is missing for each */
export async function chooseEngine(options: ChooseOptions): Promise<Engine> {
  const { setting, recordFile, log, start, attempt, conditions, now } = options;
  const allowed = setting === "auto" ? engineNames : [setting];
  const known = await readRecord(options);
  const refused: string[] = [];
  // One that ran here begins; if it does not start any more, all of them are tried again.
  const ordered = known !== undefined && allowed.includes(known) ? [known, ...allowed] : allowed;
  for (const [index, name] of ordered.entries()) {
    const isKnown = index === 0 && name === known;
    const started = await startAndTry(name, start, isKnown ? undefined : attempt);
    if (typeof started !== "string") {
      if (!isKnown) {
        // What stands there may be a pipe of a step's, which would be waited for.
        await rm(recordFile, { recursive: true, force: true });
        await writeFile(recordFile, JSON.stringify({ conditions, engine: name, at: now().toISOString() }));
      }
      log.info(`${[`The image is made by ${titles[name]}`, ...refused].join("; ")}.`);
      return started;
    }
    if (!isKnown) {
      refused.push(`${titles[name]} cannot run here: ${whatIsMissing(started)}`);
    }
  }
  throw new EngineUnavailable(refused.join("; "));
}

/** Call when the engine has failed by its own fault: the next build tries again what can run. */
export const forgetChoice = (recordFile: string): Promise<void> => rm(recordFile, { force: true });

async function startAndTry(
  name: EngineName,
  start: ChooseOptions["start"],
  attempt?: ChooseOptions["attempt"],
): Promise<Engine | string> {
  let engine: Engine;
  try {
    engine = await start(name);
  } catch (error) {
    if (error instanceof EngineUnavailable) {
      return error.message;
    }
    throw error;
  }
  let said: string | undefined = "";
  try {
    said = await attempt?.(engine);
  } finally {
    if (said !== undefined) {
      await engine.close();
    }
  }
  return said ?? engine;
}

async function readRecord({ recordFile, conditions, now }: ChooseOptions): Promise<EngineName | undefined> {
  try {
    // Steps of a build may write it: it decides nothing but the order in which engines are started.
    const found = record.parse(JSON.parse(String(await readPlain(recordFile, MAX_RECORD_BYTES))));
    const age = now().getTime() - Date.parse(found.at);
    return found.conditions === conditions && age >= 0 && age < RECORD_MS ? found.engine : undefined;
  } catch {
    return undefined;
  }
}

/** What rootlesskit, runc and buildah say where rights are missing, each as seen. */
const missing: readonly (readonly [RegExp, string])[] = [
  [/ENOENT|executable file not found/, "its programs are not in the builder's image"],
  [
    /newuidmap|newgidmap|uid_map|supplemental groups|single mapping|insufficient UIDs|lchown .*invalid argument/i,
    "newuidmap and newgidmap lack the capabilities SETUID and SETGID, the leave to gain rights, or /etc/subuid and /etc/subgid",
  ],
  [
    /fork\/exec \/proc\/self\/exe: operation not permitted|user namespace|unshare|cannot clone|CLONE_NEWUSER|Unable to determine exit status/i,
    "no user namespaces: the seccomp profile, AppArmor or user.max_user_namespaces refuses them",
  ],
  [
    /pivot_root|mount.*(operation not permitted|permission denied)/i,
    "no mounts in user namespaces: the seccomp profile or AppArmor refuses them",
  ],
];

/** In words for whoever runs the platform, with the engine's own. Pure. */
export function whatIsMissing(said: string): string {
  const [, words] = missing.find(([pattern]) => pattern.test(said)) ?? [];
  const last = said.trim().split("\n").at(-1)?.slice(0, 200) ?? "";
  return words === undefined ? last : `${words} (${last})`;
}

/** What this process may do, as the kernel tells it. */
export async function rightsHere(): Promise<string> {
  const read = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "");
  const [status, profile, map] = await Promise.all([
    read("/proc/self/status"),
    read("/proc/self/attr/current"),
    read("/proc/self/uid_map"),
  ]);
  const kept = status.match(/^(Uid|NoNewPrivs|Seccomp|Seccomp_filters|CapBnd|CapEff):.*$/gm) ?? [];
  return [release(), ...kept, profile, map].map((part) => part.replaceAll(/\s+/g, " ").trim()).join("|");
}
