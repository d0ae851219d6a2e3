import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Redactor } from "../log/redact.ts";
import { OutputLines } from "../log/writer.ts";
import { BuildkitProgress, displayName, placeOf } from "./progress.ts";

/** What `buildctl` v0.31 wrote, of real builds. */
function replay(name: string, commands: Record<string, string> = {}, chunk = 1_000) {
  const bytes = readFileSync(join(import.meta.dirname, "testdata", name));
  const steps: string[] = [];
  const output: string[] = [];
  const progress = new BuildkitProgress(
    {
      step: (step, cached) => steps.push(cached ? `${step} (cached)` : step),
      output: () => new OutputLines(new Redactor({}), (line) => output.push(line)),
    },
    commands,
  );
  for (let at = 0; at < bytes.length; at += chunk) {
    progress.push(bytes.subarray(at, at + chunk));
  }
  progress.end();
  return { steps, output, failure: progress.failure(false) };
}

describe("a build whose command fails", () => {
  test.each([1, 7, 100_000])("reports steps, output and the failing step, in pieces of %d bytes", (chunk) => {
    const { steps, output, failure } = replay("command-failed.jsonl", { "build 0": "npm run build" }, chunk);
    expect(steps.filter((step) => step.startsWith("[build"))).toEqual([
      expect.stringMatching(/^\[build 1\/4\] FROM registry\.example\/base\/node:24@sha256:/),
      "[build 2/4] WORKDIR /app (cached)",
      "[build 3/4] COPY . ./",
      "[build 4/4] npm run build",
    ]);
    // BuildKit reads both streams concurrently: this is the order in which it read them.
    expect(output).toEqual(["boom: cannot compile", "compiling"]);
    expect(failure).toEqual({
      ok: false,
      timedOut: false,
      stage: "build",
      step: "npm run build",
      exitCode: 3,
      text: "boom: cannot compile\ncompiling\n",
    });
  });
});

test("a Dockerfile that cannot be parsed fails outside of any stage, with BuildKit's error", () => {
  const { failure } = replay("dockerfile-invalid.jsonl");
  expect(failure.stage).toBeUndefined();
  expect(failure.exitCode).toBeUndefined();
  expect(failure.text).toContain("unknown instruction: FROB");
});

test("a file that is not there fails its step without an exit code", () => {
  const { failure } = replay("copy-missing.jsonl");
  expect(failure.exitCode).toBeUndefined();
  expect(failure.text).toContain('"/missing": not found');
});

test.each([
  ["[dependencies 2/5] RUN x", { stage: "dependencies", number: 2, of: 5 }],
  ["[linux/amd64 build  4/10] COPY . .", { stage: "build", number: 4, of: 10 }],
  ["[internal] load build definition", undefined],
  ["exporting to oci image format", undefined],
])("the place of %j", (name, place) => {
  expect(placeOf(name)).toEqual(place);
});

test("a step is shown without its mounts, the image's own stage by that name", () => {
  expect(displayName("[stage-3 2/3] RUN --mount=type=cache,target=/x make", {})).toBe("[image 2/3] RUN make");
});
