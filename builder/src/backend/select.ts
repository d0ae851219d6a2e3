/** Selects the builder backend: the first of those allowed that passes a probe in this container. */

import { readFile, rm, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { z } from "zod";
import type { Log } from "../log/writer.ts";
import { readRegularFile } from "../regular-file.ts";
import { type BackendName, type BackendSetting, backendNames } from "../task.ts";
import { BackendUnavailable, type BuilderBackend } from "./backend.ts";

const titles: Record<BackendName, string> = { buildkit: "BuildKit", buildah: "buildah" };

export interface SelectOptions {
  setting: BackendSetting;
  /** File that records which backend passed here, so that the next build needs no probe. */
  recordFile: string;
  log: Pick<Log, "info">;
  /** @throws BackendUnavailable */
  start(name: BackendName): Promise<BuilderBackend>;
  /** The backend's error; undefined when it can build an image. */
  probe(backend: BuilderBackend): Promise<string | undefined>;
  /** Identifies the privileges of this process. */
  fingerprint: string;
  now(): Date;
}

/** How long a probe is valid: a profile of the node may change unnoticed. */
const RECORD_MS = 24 * 3_600_000;
const MAX_RECORD_BYTES = 16 * 1024;

const record = z.strictObject({ conditions: z.string(), engine: z.enum(backendNames), at: z.iso.datetime() });

/** Starts the backend of a build, and names it in the log. @throws BackendUnavailable that says what each backend lacks */
export async function selectBackend(options: SelectOptions): Promise<BuilderBackend> {
  const { setting, recordFile, log, start, probe, fingerprint, now } = options;
  const allowed = setting === "auto" ? backendNames : [setting];
  const known = await readRecord(options);
  const refused: string[] = [];
  // The recorded one comes first; when it no longer starts, all of them are probed again.
  const ordered = known !== undefined && allowed.includes(known) ? [known, ...allowed] : allowed;
  for (const [index, name] of ordered.entries()) {
    const isKnown = index === 0 && name === known;
    const started = await startAndProbe(name, start, isKnown ? undefined : probe);
    if (typeof started !== "string") {
      if (!isKnown) {
        // A step of the build may have put a named pipe there, which would block.
        await rm(recordFile, { recursive: true, force: true });
        await writeFile(
          recordFile,
          JSON.stringify({ conditions: fingerprint, engine: name, at: now().toISOString() }),
        );
      }
      log.info(`${[`The image is made by ${titles[name]}`, ...refused].join("; ")}.`);
      return started;
    }
    if (!isKnown) {
      refused.push(`${titles[name]} cannot run here: ${describeMissing(started)}`);
    }
  }
  throw new BackendUnavailable(refused.join("; "));
}

/** Call when the backend itself has failed: the next build probes again. */
export const forgetSelection = (recordFile: string): Promise<void> => rm(recordFile, { force: true });

async function startAndProbe(
  name: BackendName,
  start: SelectOptions["start"],
  probe?: SelectOptions["probe"],
): Promise<BuilderBackend | string> {
  let backend: BuilderBackend;
  try {
    backend = await start(name);
  } catch (error) {
    if (error instanceof BackendUnavailable) {
      return error.message;
    }
    throw error;
  }
  let said: string | undefined = "";
  try {
    said = await probe?.(backend);
  } finally {
    if (said !== undefined) {
      await backend.close();
    }
  }
  return said ?? backend;
}

async function readRecord({ recordFile, fingerprint, now }: SelectOptions): Promise<BackendName | undefined> {
  try {
    // Steps of a build can write this file: it only decides the order in which backends are started.
    const found = record.parse(JSON.parse(String(await readRegularFile(recordFile, MAX_RECORD_BYTES))));
    const age = now().getTime() - Date.parse(found.at);
    return found.conditions === fingerprint && age >= 0 && age < RECORD_MS ? found.engine : undefined;
  } catch {
    return undefined;
  }
}

/** Errors of rootlesskit, runc and buildah where privileges are missing, as observed. */
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

/** Explains a backend's error to the platform's administrators. Pure. */
export function describeMissing(said: string): string {
  const [, words] = missing.find(([pattern]) => pattern.test(said)) ?? [];
  const last = said.trim().split("\n").at(-1)?.slice(0, 200) ?? "";
  return words === undefined ? last : `${words} (${last})`;
}

/** The privileges of this process, as the kernel reports them. */
export async function privilegeFingerprint(): Promise<string> {
  const read = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "");
  const [status, profile, map] = await Promise.all([
    read("/proc/self/status"),
    read("/proc/self/attr/current"),
    read("/proc/self/uid_map"),
  ]);
  const kept = status.match(/^(Uid|NoNewPrivs|Seccomp|Seccomp_filters|CapBnd|CapEff):.*$/gm) ?? [];
  return [release(), ...kept, profile, map].map((part) => part.replaceAll(/\s+/g, " ").trim()).join("|");
}
