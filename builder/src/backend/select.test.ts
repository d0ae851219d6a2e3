import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Engine, EngineUnavailable } from "./backend.ts";
import type { EngineName } from "./names.ts";
import { type ChooseOptions, chooseEngine, forgetChoice, whatIsMissing } from "./select.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-choose-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const noUsers = "newuidmap: write to uid_map failed: Operation not permitted";

/** @param cannot engines that do not start, or whose trial fails, and what they say */
function setUp(
  cannot: { start?: Partial<Record<EngineName, string>>; run?: Partial<Record<EngineName, string>> } = {},
) {
  const did: string[] = [];
  const lines: string[] = [];
  const names = new Map<Engine, EngineName>();
  const options: ChooseOptions = {
    setting: "auto",
    recordFile: join(folder, "engine.json"),
    log: { info: (line) => lines.push(line) },
    start: async (name) => {
      did.push(`start ${name}`);
      const said = cannot.start?.[name];
      if (said !== undefined) {
        throw new EngineUnavailable(said);
      }
      const engine: Engine = {
        build: async () => ({ ok: true }),
        close: async () => void did.push(`close ${name}`),
      };
      names.set(engine, name);
      return engine;
    },
    attempt: async (engine) => {
      const name = names.get(engine) as EngineName;
      did.push(`try ${name}`);
      return cannot.run?.[name];
    },
    conditions: "here",
    now: () => new Date("2026-01-01T00:00:00Z"),
  };
  return { did, lines, options, chosen: async () => names.get(await chooseEngine(options)) };
}

describe("auto", () => {
  test("is BuildKit where it can run, without a look at the other", async () => {
    const { chosen, did, lines } = setUp();
    expect(await chosen()).toBe("buildkit");
    expect(did).toEqual(["start buildkit", "try buildkit"]);
    expect(lines).toEqual(["The image is made by BuildKit."]);
  });

  test.each([
    ["does not start", { start: { buildkit: noUsers } }, ["start buildkit"]],
    [
      "starts and runs nothing",
      { run: { buildkit: noUsers } },
      ["start buildkit", "try buildkit", "close buildkit"],
    ],
  ])("is buildah where BuildKit %s, and the log says why", async (_, cannot, before) => {
    const { chosen, did, lines } = setUp(cannot);
    expect(await chosen()).toBe("buildah");
    expect(did).toEqual([...before, "start buildah", "try buildah"]);
    expect(lines[0]).toMatch(
      /^The image is made by buildah; BuildKit cannot run here: newuidmap and newgidmap lack/,
    );
  });

  test("fails where neither can, with what is missing for each, and leaves none running", async () => {
    const { chosen, did, options } = setUp({
      start: { buildkit: noUsers },
      run: { buildah: "lchown /a: invalid argument" },
    });
    await expect(chosen()).rejects.toThrow(
      /BuildKit cannot run here: newuidmap .*; buildah cannot run here: newuidmap/,
    );
    expect(did.at(-1)).toBe("close buildah");
    await expect(readFile(options.recordFile)).rejects.toThrow("ENOENT");
  });
});

test("an engine that is asked for is the only one", async () => {
  const { options, did } = setUp({ start: { buildkit: noUsers } });
  await expect(chooseEngine({ ...options, setting: "buildkit" })).rejects.toThrow(EngineUnavailable);
  expect(did).toEqual(["start buildkit"]);
});

describe("an engine that ran here", () => {
  test("is not tried again, for a day, under the same rights", async () => {
    const first = setUp({ start: { buildkit: noUsers } });
    await first.chosen();
    const again = setUp({ start: { buildkit: noUsers } });
    expect(await again.chosen()).toBe("buildah");
    expect(again.did).toEqual(["start buildah"]);
  });

  test.each([
    ["other rights", { conditions: "there" }],
    ["a day later", { now: () => new Date("2026-01-02T00:00:01Z") }],
    ["a clock that was set back", { now: () => new Date("2025-12-31T00:00:00Z") }],
  ])("is tried again with %s", async (_, change) => {
    await setUp().chosen();
    const { options, did } = setUp();
    await chooseEngine({ ...options, ...change });
    expect(did).toEqual(["start buildkit", "try buildkit"]);
  });

  test("and does not start any more leads to a trial of all", async () => {
    await setUp().chosen();
    const { chosen, did } = setUp({ start: { buildkit: noUsers } });
    expect(await chosen()).toBe("buildah");
    expect(did).toEqual(["start buildkit", "start buildkit", "start buildah", "try buildah"]);
  });

  test("and fails by its own fault is tried again", async () => {
    const { chosen, options } = setUp();
    await chosen();
    await forgetChoice(options.recordFile);
    const { did, chosen: again } = setUp();
    await again();
    expect(did).toContain("try buildkit");
  });

  test("counts for nothing when a step of a build has written what is no record", async () => {
    const { options, did, chosen } = setUp();
    await writeFile(options.recordFile, '{"engine":"evil"}');
    expect(await chosen()).toBe("buildkit");
    expect(did).toContain("try buildkit");
  });
});

test.each([
  ["Error running newuidmap: fork/exec /usr/bin/newuidmap: operation not permitted: ", "SETUID and SETGID"],
  ["error setting supplemental groups list: operation not permitted", "SETUID and SETGID"],
  [
    "[rootlesskit:parent] error: failed to start the child: fork/exec /proc/self/exe: operation not permitted",
    "no user namespaces",
  ],
  ['buildah did not start: level=error msg="(Unable to determine exit status)"', "no user namespaces"],
  ["jailing process inside rootfs: pivot_root .: operation not permitted", "no mounts in user namespaces"],
  ["buildkitd did not start: spawn rootlesskit ENOENT", "not in the builder's image"],
  ["something else", "something else"],
])("what is missing where the engine says %s", (said, words) => {
  expect(whatIsMissing(said)).toContain(words);
});
