import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "../hack/lib/paths.ts";

/** Entry points of the platform's processes; each ends at once, since none finds its settings. */
const entries = ["operator/src/main.ts", "api-server/src/main.ts", "collector/src/main.ts"];

/** Prints the URL of every module that is loaded, and what it is resolved to. */
const printer = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { process.stderr.write("loaded " + url + "\\n"); return next(url, context); } });`;

it.each(entries)("%s does not load client-node, which takes 87 MiB", async (entry) => {
  const hook = `data:text/javascript,${encodeURIComponent(printer)}`;
  const env = { PATH: process.env.PATH };
  const { stderr } = await promisify(execFile)(process.execPath, ["--import", hook, entry], {
    cwd: root,
    env,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stderr: string }) => error);
  const loaded = stderr.split("\n").filter((line) => line.startsWith("loaded "));
  expect(loaded.some((line) => line.includes("/controller-runtime/src/client/cluster-config.ts"))).toBe(true);
  expect(loaded.filter((line) => line.includes("@kubernetes/client-node"))).toEqual([]);
});
