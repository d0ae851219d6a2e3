import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Redactor } from "../log/redact.ts";
import { OutputLines } from "../log/writer.ts";
import { run } from "../plan/dockerfile.ts";
import { BuildahOutput } from "./buildah-output.ts";

/** Output of buildah: recorded from 1.39 where a file is named. */
function replay(bytes: Buffer, { chunk = 1_000, isOk = false } = {}) {
  const steps: string[] = [];
  const output: string[] = [];
  const read = new BuildahOutput({
    step: (step, cached) => steps.push(cached ? `${step} (cached)` : step),
    output: () => new OutputLines(new Redactor({}), (line) => output.push(line)),
  });
  for (let at = 0; at < bytes.length; at += chunk) {
    read.push(bytes.subarray(at, at + chunk));
  }
  read.end(isOk);
  return { steps, output, failure: read.failure(false) };
}

const recorded = (name: string): Buffer =>
  readFileSync(join(import.meta.dirname, "testdata/buildah", `${name}.txt`));
const lines = (...text: string[]): Buffer => Buffer.from(`${text.join("\n")}\n`);

describe("a build whose command fails", () => {
  test.each([1, 7, 100_000])("reports steps, output and the failing step, in chunks of %d bytes", (chunk) => {
    const { steps, output, failure } = replay(recorded("command-failed"), { chunk });
    const command = "echo compiling; echo boom: cannot compile >&2; exit 3";
    expect(steps).toEqual([
      "[build 1/5] FROM registry.example/base/shell:1 AS build",
      "[build 3/5] WORKDIR /app (cached)",
      "[build 4/5] COPY . ./",
      `[build 5/5] ${command}`,
    ]);
    expect(output).toEqual(["boom: cannot compile", "compiling"]);
    expect(failure).toEqual({
      ok: false,
      timedOut: false,
      stage: "build",
      step: command,
      exitCode: 3,
      text: "boom: cannot compile\ncompiling\n",
    });
  });

  test("killed by the kernel, it has the exit code that a shell has for it", () => {
    expect(replay(recorded("killed")).failure).toMatchObject({ exitCode: 137, step: "RUN kill -9 $$" });
  });
});

test("a missing file fails its step without an exit code", () => {
  const { failure } = replay(recorded("copy-missing"));
  expect(failure).toMatchObject({ stage: "image", step: "COPY --from=one /gone ./" });
  expect(failure).not.toHaveProperty("exitCode");
  expect(failure.text).toContain("no such file or directory");
});

test("the quoted step has failed, even though another one began after it", () => {
  const { failure } = replay(
    lines(
      "[2/2] STEP 1/2: FROM scratch",
      "[2/2] STEP 2/2: COPY --from=one /gone ./",
      "[1/2] STEP 1/2: FROM scratch AS one",
      "[1/2] STEP 2/2: COPY here /",
      'Error: building at STEP "COPY --from=one /gone ./": copier: stat: "/gone": no such file or directory',
    ),
  );
  expect(failure.step).toBe("COPY --from=one /gone ./");
});

test("a failed copy says why, without buildah's internal request", () => {
  const request =
    'copier.request{Request:"PUT", Root:"/", PutOptions:copier.PutOptions{UIDMap:[]idtools.IDMap{}}}';
  const { failure } = replay(
    lines(
      "STEP 1/2: FROM scratch",
      "STEP 2/2: COPY a /",
      `Error: building at STEP "COPY a /": storing "/a": error during bulk transfer for ${request}: copier: put: lchown /a: invalid argument`,
    ),
  );
  expect(failure.text.trim()).toBe(
    'Error: building at STEP "COPY a /": storing "/a": copier: put: lchown /a: invalid argument',
  );
});

test.each([
  ["frob", "Unknown instruction"],
  ["base-gone", "manifest unknown"],
])("%s fails with buildah's error, and without an exit code", (name, words) => {
  const { failure } = replay(recorded(name));
  expect(failure.text).toContain(words);
  expect(failure).not.toHaveProperty("exitCode");
});

describe("what a program prints", () => {
  const step = (number: number, text: string) => `STEP ${number}/3: ${text}`;

  test("without a line break at its end is not lost, and neither is the next step", () => {
    const { steps, output } = replay(
      lines(step(1, "FROM scratch"), step(2, "RUN printf done"), `done${step(3, "RUN id")}`, "uid=0"),
      { isOk: true },
    );
    expect(steps).toEqual(["[image 1/3] FROM scratch", "[image 2/3] RUN printf done", "[image 3/3] RUN id"]);
    expect(output).toEqual(["done", "uid=0"]);
  });

  test("in the form of steps that are not next, and of errors, is its output", () => {
    const { steps, output } = replay(
      lines(
        step(1, "FROM scratch"),
        step(2, "RUN lie"),
        step(7, "RUN forged"),
        "Error: building at STEP",
        "more",
      ),
      { isOk: true },
    );
    expect(steps).toHaveLength(2);
    expect(output).toEqual(["STEP 7/3: RUN forged", "Error: building at STEP", "more"]);
  });

  test("of any length without a line break continues", () => {
    const long = "x".repeat(600_000);
    const { output } = replay(
      Buffer.concat([lines(step(1, "FROM scratch"), step(2, "RUN long")), lines(long, "Error: end")]),
      {
        chunk: 10_000,
        isOk: true,
      },
    );
    expect(output.join("").length).toBe(long.length + "Error: end".length);
  });
});

test("a planned step is reported by its command, and a silent one after a pause", () => {
  const steps: string[] = [];
  const read = new BuildahOutput({
    step: (name) => steps.push(name),
    output: () => {
      throw new Error("no output");
    },
  });
  read.push(lines("[1/2] STEP 1/2: FROM a AS Build", `[1/2] STEP 2/2: ${run("npm ci")}`));
  expect(steps).toHaveLength(1);
  read.flush();
  expect(steps).toEqual(["[build 1/2] FROM a AS Build", "[build 2/2] npm ci"]);
});

test("a failure without an error message quotes the last lines of output", () => {
  const { failure } = replay(lines("fatal: no memory"));
  expect(failure).toEqual({ ok: false, timedOut: false, text: "fatal: no memory" });
});
