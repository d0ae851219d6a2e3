import { appendFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** A container's log as a kubelet and its runtime keep it, on a real disk. */
export class FakeContainerLog {
  readonly folder: string;
  /** The second in which it writes, in which each line has a nanosecond of its own. */
  second = "2026-11-22T04:42:09";
  readonly #kept: number;
  #restart = 0;
  #ticks = 0;
  #rotations = 0;
  /** Names of rotated files, oldest first. */
  #rotated: string[] = [];

  /** @param kept files of a container, the one that is written to included */
  constructor(podLogs: string, pod: string, container = "traefik", kept = 3) {
    this.folder = join(podLogs, pod, container);
    this.#kept = kept;
  }

  get #current(): string {
    return join(this.folder, `${this.#restart}.log`);
  }

  /** The container starts: there is an empty file. */
  async start(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    await writeFile(this.#current, "");
  }

  /** The container starts again. */
  async restart(): Promise<void> {
    this.#restart += 1;
    this.#rotated = [];
    await this.start();
  }

  /** Lines of the container's, in one write. */
  async write(lines: readonly string[], stream = "stdout"): Promise<void> {
    await this.writeRaw(lines.map((line) => `${this.#time()} ${stream} F ${line}\n`).join(""));
  }

  /** A line that the runtime cuts into pieces of some bytes. */
  async writePieces(line: string, size: number, upTo = Number.POSITIVE_INFINITY): Promise<void> {
    const pieces = line.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
    const text = pieces.map(
      (piece, i) => `${this.#time()} stdout ${i < pieces.length - 1 ? "P" : "F"} ${piece}\n`,
    );
    await this.writeRaw(text.slice(0, upTo).join(""));
  }

  async writeRaw(text: string): Promise<void> {
    await appendFile(this.#current, text);
  }

  /** Rotates as a kubelet does: what exceeds the number is removed, what was rotated before compressed. */
  async rotate(): Promise<void> {
    while (this.#rotated.length > this.#kept - 2) {
      const oldest = this.#rotated.shift() ?? "";
      await Promise.all([rm(oldest, { force: true }), rm(`${oldest}.gz`, { force: true })]);
    }
    for (const path of this.#rotated) {
      const text = await readFile(path).catch(() => undefined);
      if (!text) {
        continue;
      }
      await writeFile(`${path}.tmp`, gzipSync(text));
      await rename(`${path}.tmp`, `${path}.gz`);
      await rm(path);
    }
    this.#rotations += 1;
    const time = String(this.#rotations).padStart(6, "0");
    const name = `${this.#current}.20261122-${time}`;
    await rename(this.#current, name);
    this.#rotated.push(name);
    await writeFile(this.#current, "");
  }

  /** The pod is deleted. */
  async remove(): Promise<void> {
    await rm(join(this.folder, ".."), { recursive: true });
  }

  #time(): string {
    this.#ticks += 1;
    return `${this.second}.${String(this.#ticks).padStart(9, "0")}Z`;
  }
}
