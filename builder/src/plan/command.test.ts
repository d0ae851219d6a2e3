import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultRuntimeCatalog } from "../catalog.ts";
import { execForm, procfileCommand, startWords } from "./command.ts";
import { commandOf, run } from "./dockerfile.ts";
import { planBuild } from "./index.ts";
import type { BuildSettings } from "./input.ts";

const images = { node: { "24": { build: "base/node:24", run: "base/node:24" } } };

function plan(settings: BuildSettings) {
  const files = ["package.json", "package-lock.json", "index.js"];
  const texts = { "package.json": '{"main":"index.js"}' };
  return planBuild({ settings, files, texts, catalog: defaultRuntimeCatalog(), images, port: 8080 });
}

/** Any text, and much of what a shell, a Dockerfile or JSON would take for its own. */
const anything = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 8 }),
      fc.constantFrom(
        "<<EOF",
        "\\",
        '"',
        "'",
        "$HOME",
        `$${"{X}"}`,
        "#",
        "]",
        "\n",
        "\r",
        "RUN id",
        "\u0000",
        "\u2028",
        "`id`",
        " ",
      ),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => parts.join("").slice(0, 256))
  .filter((text) => text !== "");

/** What of a Dockerfile's line a builder reads: nothing ever spans two lines, or begins a here-document. */
function instructions(dockerfile: string): string[] {
  const lines = dockerfile.split("\n").filter((line) => line !== "" && !line.startsWith("# "));
  for (const line of lines) {
    expect(line).toMatch(/^(FROM|USER|WORKDIR|ARG|ENV|COPY|RUN|EXPOSE|CMD) /);
    expect(line).not.toContain("<<");
    expect(line).not.toMatch(/[\\`]\s*$/);
  }
  return lines;
}

describe("any command", () => {
  test("is rejected, or is in the Dockerfile exactly and adds no line", () => {
    const usual = plan({ startCommand: "x", preBuildCommand: "x", buildCommand: "x" });
    const length = usual.ok ? instructions(usual.plan.dockerfile).length : 0;
    fc.assert(
      fc.property(anything, anything, anything, (startCommand, preBuildCommand, buildCommand) => {
        const result = plan({ startCommand, preBuildCommand, buildCommand });
        const control = /[\p{Cc}\u2028\u2029]/u;
        const isBroken = [startCommand, preBuildCommand, buildCommand].some(
          (text) => control.test(text) || !text.isWellFormed(),
        );
        expect(result.ok).toBe(!isBroken);
        if (!result.ok) {
          expect(result.failure.code).toBe("BUILD_SETTINGS_INVALID");
          return;
        }
        const lines = instructions(result.plan.dockerfile);
        expect(lines).toHaveLength(length);
        const commands = lines.map(commandOf).filter((command) => command !== undefined);
        expect(commands).toEqual([preBuildCommand, buildCommand]);
        const words = JSON.parse(lines.at(-1)?.replace(/^CMD /, "") ?? "") as string[];
        expect(words.length === 3 && words[1] === "-c" ? words[2] : words.join(" ")).toBe(
          words[0] === "/bin/sh" ? startCommand : startCommand.trim().replaceAll(/ +/g, " "),
        );
      }),
      { numRuns: 300 },
    );
  });

  test("is given back by the step that it became", () => {
    const command = `echo "a" 'b' \\ <<X ${"$"}(id)`;
    expect(commandOf(`[build 2/3] ${run(command, [{ id: "npm", target: "/cache/npm" }])}`)).toBe(command);
    expect(commandOf("[build 2/3] RUN npm ci")).toBeUndefined();
    expect(execForm(["<<EOF"])).toBe('["\\u003c\\u003cEOF"]');
  });
});

test.each([
  ["node server.js --port=8080", ["node", "server.js", "--port=8080"]],
  ["gunicorn app:app", ["gunicorn", "app:app"]],
  ["  ./run  x ", ["./run", "x"]],
  ["PORT=1 node x", undefined],
  ["cd app && node x", undefined],
  ["cd app", undefined],
  ["node x > log", undefined],
  ["node $FILE", undefined],
  ["node 'a b'", undefined],
  ["exec node x", undefined],
  ["node *.js", undefined],
  ["node ~/x", undefined],
])("%j runs without a shell only if that makes no difference", (command, words) => {
  expect(startWords(command)).toEqual(words ?? ["/bin/sh", "-c", command]);
});

test.each([
  ["web: node x\nworker: y\n", "node x"],
  ["worker: y\r\nweb:   node x  \r\n", "node x"],
  ["worker: web: x\n", undefined],
  ["web:\nworker: y\n", undefined],
  ["", undefined],
])("the web process of the Procfile %j", (text, command) => {
  expect(procfileCommand(text)).toBe(command);
});
