import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "../hack/lib/paths.ts";

/** Entry points of the platform's processes; each ends at once, since none finds its settings. */
const entries = ["operator/src/main.ts", "api-server/src/main.ts", "collector/src/main.ts"];

/** Prints the URL of every module that is loaded, and what it is resolved to. */
const printer = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { process.stderr.write("loaded " + url + "\\n"); return next(url, context); } });`;

/** Packages that take tens of MB, and that are loaded when they are used: for a kubeconfig, a MariaDB, a new certificate. */
const packages = ["@kubernetes/client-node", "mariadb", "@peculiar/x509"];

it.each(entries)("%s loads no package that it may never use and that takes tens of MB", async (entry) => {
  const hook = `data:text/javascript,${encodeURIComponent(printer)}`;
  const env = { PATH: process.env.PATH };
  const { stderr } = await promisify(execFile)(process.execPath, ["--import", hook, entry], {
    cwd: root,
    env,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stderr: string }) => error);
  const loaded = stderr.split("\n").filter((line) => line.startsWith("loaded "));
  expect(loaded.some((line) => line.includes("/controller-runtime/src/client/cluster-config.ts"))).toBe(true);
  for (const name of packages) {
    expect(loaded.filter((line) => line.includes(`/node_modules/${name}/`))).toEqual([]);
  }
});
