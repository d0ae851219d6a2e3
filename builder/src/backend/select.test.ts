import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BackendName } from "../task.ts";
import { BackendUnavailable, type BuilderBackend } from "./backend.ts";
import { describeMissing, forgetSelection, type SelectOptions, selectBackend } from "./select.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-select-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const noUsers = "newuidmap: write to uid_map failed: Operation not permitted";

/** @param cannot errors of backends that do not start, or whose probe fails */
function setUp(
  cannot: { start?: Partial<Record<BackendName, string>>; run?: Partial<Record<BackendName, string>> } = {},
) {
  const did: string[] = [];
  const lines: string[] = [];
  const names = new Map<BuilderBackend, BackendName>();
  const options: SelectOptions = {
    setting: "auto",
    recordFile: join(folder, "engine.json"),
    log: { info: (line) => lines.push(line) },
    start: async (name) => {
      did.push(`start ${name}`);
      const said = cannot.start?.[name];
      if (said !== undefined) {
        throw new BackendUnavailable(said);
      }
      const backend: BuilderBackend = {
        build: async () => ({ ok: true }),
        close: async () => void did.push(`close ${name}`),
      };
      names.set(backend, name);
      return backend;
    },
    probe: async (backend) => {
      const name = names.get(backend) as BackendName;
      did.push(`probe ${name}`);
      return cannot.run?.[name];
    },
    fingerprint: "here",
    now: () => new Date("2026-01-01T00:00:00Z"),
  };
  return { did, lines, options, chosen: async () => names.get(await selectBackend(options)) };
}

describe("auto", () => {
  test("is BuildKit where it can run, without starting the other", async () => {
    const { chosen, did, lines } = setUp();
    expect(await chosen()).toBe("buildkit");
    expect(did).toEqual(["start buildkit", "probe buildkit"]);
    expect(lines).toEqual(["The image is made by BuildKit."]);
  });

  test.each([
    ["does not start", { start: { buildkit: noUsers } }, ["start buildkit"]],
    [
      "starts and cannot run a step",
      { run: { buildkit: noUsers } },
      ["start buildkit", "probe buildkit", "close buildkit"],
    ],
  ])("is buildah where BuildKit %s, and the log says why", async (_, cannot, before) => {
    const { chosen, did, lines } = setUp(cannot);
    expect(await chosen()).toBe("buildah");
    expect(did).toEqual([...before, "start buildah", "probe buildah"]);
    expect(lines[0]).toMatch(
      /^The image is made by buildah; BuildKit cannot run here: newuidmap and newgidmap lack/,
    );
  });

  test("fails where neither can run, says what each lacks, and leaves none running", async () => {
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

test("a configured backend is the only one tried", async () => {
  const { options, did } = setUp({ start: { buildkit: noUsers } });
  await expect(selectBackend({ ...options, setting: "buildkit" })).rejects.toThrow(BackendUnavailable);
  expect(did).toEqual(["start buildkit"]);
});

describe("a backend that ran here", () => {
  test("is not probed again for a day under the same privileges", async () => {
    const first = setUp({ start: { buildkit: noUsers } });
    await first.chosen();
    const again = setUp({ start: { buildkit: noUsers } });
    expect(await again.chosen()).toBe("buildah");
    expect(again.did).toEqual(["start buildah"]);
  });

  test.each([
    ["other privileges", { fingerprint: "there" }],
    ["a day later", { now: () => new Date("2026-01-02T00:00:01Z") }],
    ["a clock that was set back", { now: () => new Date("2025-12-31T00:00:00Z") }],
  ])("is probed again with %s", async (_, change) => {
    await setUp().chosen();
    const { options, did } = setUp();
    await selectBackend({ ...options, ...change });
    expect(did).toEqual(["start buildkit", "probe buildkit"]);
  });

  test("and no longer starts makes all of them be probed", async () => {
    await setUp().chosen();
    const { chosen, did } = setUp({ start: { buildkit: noUsers } });
    expect(await chosen()).toBe("buildah");
    expect(did).toEqual(["start buildkit", "start buildkit", "start buildah", "probe buildah"]);
  });

  test("and fails itself is probed again", async () => {
    const { chosen, options } = setUp();
    await chosen();
    await forgetSelection(options.recordFile);
    const { did, chosen: again } = setUp();
    await again();
    expect(did).toContain("probe buildkit");
  });

  test("is ignored when a step of a build has overwritten the record", async () => {
    const { options, did, chosen } = setUp();
    await writeFile(options.recordFile, '{"engine":"evil"}');
    expect(await chosen()).toBe("buildkit");
    expect(did).toContain("probe buildkit");
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
])("explains %s", (said, words) => {
  expect(describeMissing(said)).toContain(words);
});
