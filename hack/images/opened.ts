import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { isLong } from "../../test/kit/long.ts";
import { run as runHere } from "../lib/exec.ts";
import { databaseImages } from "./databases.ts";
import { type InsideProcess, inside } from "./inside.ts";

// The images of a stack that has one of each engine; with --long every version.
const chosen = databaseImages(isLong ? "all" : "default");
/** The versions of an engine that tests run. */
export const versionsOf = (engine: string): string[] =>
  chosen.filter((image) => image.engine === engine).map(({ version }) => version);

/** A test may have to build its image. */
export const BUILD_MS = 600_000;
const undo: (() => Promise<unknown>)[] = [];

/** What has to be done at the end of a test, the last first. */
export const undoLater = (step: () => Promise<unknown>): number => undo.push(step);

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) {
    await step();
  }
});

/** An image's files, a volume that its user may write, and a certificate for 127.0.0.1 as the platform mounts it. */
export async function opened(engine: string, version: string) {
  const image = chosen.find((one) => one.engine === engine && one.version === version);
  if (!image) {
    throw new Error(`no image of ${engine} ${version}`);
  }
  const files = await inside(await image.build());
  undo.push(files.close);
  // As the kubelet mounts it.
  await writeFile(join(files.root, "etc/hosts"), "127.0.0.1 localhost\n");
  const volume = await mkdtemp(join(tmpdir(), `slipway-${engine}-`));
  undo.push(() => rm(volume, { recursive: true, force: true }));
  const own = async (path: string): Promise<void> => chown(join(volume, path), image.uid, image.gid);
  await chmod(volume, 0o755);
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"];
  const [key, certificate] = [join(volume, "tls.key"), join(volume, "tls.crt")];
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  await runHere("openssl", [...kind, ...subject, "-keyout", key, "-out", certificate]);
  await own("tls.key");
  for (const folder of ["data", "copy", "other"]) {
    await mkdir(join(volume, folder), { mode: 0o700 });
    await own(folder);
  }
  const start = (command: string[], env: Record<string, string> = {}): InsideProcess => {
    const running = files.run(command, { uid: image.uid, mounts: { volume }, env: { ...PATHS, ...env } });
    undo.push(() => running.stop("SIGKILL").catch(() => undefined));
    return running;
  };
  const run = async (command: string[], env: Record<string, string> = {}): Promise<string> => {
    const running = files.run(command, { uid: image.uid, mounts: { volume }, env: { ...PATHS, ...env } });
    if ((await running.exited) !== 0) {
      throw new Error(`${command.join(" ")}: ${running.output()}`);
    }
    return running.output().trim();
  };
  return { start, run, volume };
}

const PATHS = { LANG: "C.UTF-8", HOME: "/tmp" };
