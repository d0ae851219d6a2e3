/** npm, yarn and pnpm: how each installs exactly what its lockfile says. */

import { z } from "zod";
import type { Cache } from "./dockerfile.ts";
import { PlanError, type Tree } from "./input.ts";

export interface Manager {
  name: "npm" | "yarn" | "pnpm";
  lockfile: string;
  /** Installs the manager itself, where the image lacks it. */
  setup?: string;
  install: string;
  /** Runs a script of package.json. */
  runScript(script: string): string;
  /** Removes what only the build needs, undefined where the manager cannot. */
  prune?: string;
  /** Files beside the manifest that decide what is installed. */
  manifests: string[];
  cache: Cache;
  env: Record<string, string>;
}

/** Where managers that the image lacks are installed. */
const TOOLS = "/opt/slipway";
const TOOLS_PATH = { PATH: `${TOOLS}/bin:$PATH` };

/** Versions for projects that name none in `packageManager`, by the format of the lockfile. */
const YARN_CLASSIC = "1.22.22";
const YARN_BERRY = { 3: "3.8.6", 4: "4.18.1" };
const PNPM = { 5: "7.33.7", 6: "8.15.9", 9: "10.34.8" };

/**
 * The manager whose lockfile exists; of several, the one that `packageManager` names.
 * @returns undefined when there is no lockfile
 */
export function detectManager(tree: Tree, pkg: PackageJson): Manager | undefined {
  const declared = /^(npm|yarn|pnpm)@(\d+\.\d+\.\d+(?:-[\w.]+)?)(?:\+[\w.]+)?$/.exec(
    pkg.packageManager ?? "",
  );
  const [, declaredName, declaredVersion] = declared ?? [];
  const found = {
    npm: tree.first("npm-shrinkwrap.json", "package-lock.json"),
    pnpm: tree.first("pnpm-lock.yaml"),
    yarn: tree.first("yarn.lock"),
  };
  const order = (["npm", "pnpm", "yarn"] as const).toSorted(
    (a, b) => Number(b === declaredName) - Number(a === declaredName),
  );
  const name = order.find((each) => found[each] !== undefined);
  const version = name === declaredName ? declaredVersion : undefined;
  switch (name) {
    case "npm":
      return npm(found.npm ?? "");
    case "pnpm":
      return pnpm(version ?? pnpmVersion(tree.text("pnpm-lock.yaml")));
    case "yarn":
      return yarn(tree, version);
    case undefined:
      return undefined;
  }
}

function npm(lockfile: string): Manager {
  return {
    name: "npm",
    lockfile,
    // A NODE_ENV of the project's must not keep from the build what it needs.
    install: "npm ci --include=dev --no-audit --no-fund",
    runScript: (script) => `npm run ${script}`,
    prune: "npm prune --omit=dev --no-audit --no-fund",
    manifests: ["package.json", lockfile, ".npmrc"],
    cache: { id: "npm", target: "/cache/npm" },
    env: { NPM_CONFIG_CACHE: "/cache/npm", NPM_CONFIG_UPDATE_NOTIFIER: "false" },
  };
}

function pnpm(version: string): Manager {
  const major = Number.parseInt(version, 10);
  return {
    name: "pnpm",
    lockfile: "pnpm-lock.yaml",
    setup: `npm install --global --no-audit --no-fund --prefix ${TOOLS} pnpm@${version}`,
    install: "pnpm install --frozen-lockfile --prod=false",
    runScript: (script) => `pnpm run ${script}`,
    prune: "pnpm prune --prod",
    manifests: ["package.json", "pnpm-lock.yaml", ".npmrc"],
    cache: { id: "pnpm", target: "/cache/pnpm" },
    // Since version 11 settings of npm's are not pnpm's any more.
    env: { [`${major >= 11 ? "PNPM" : "NPM"}_CONFIG_STORE_DIR`]: "/cache/pnpm", ...TOOLS_PATH },
  };
}

function yarn(tree: Tree, declared: string | undefined): Manager {
  const format = Number(/^ {2}version: (\d+)/m.exec(tree.text("yarn.lock"))?.[1] ?? "0");
  const isBerry =
    declared === undefined ? /^__metadata:/m.test(tree.text("yarn.lock")) : !declared.startsWith("1.");
  return isBerry
    ? berry(declared ?? (format >= 7 ? YARN_BERRY[4] : YARN_BERRY[3]))
    : classic(declared ?? YARN_CLASSIC);
}

function classic(version: string): Manager {
  const install = "yarn install --frozen-lockfile --non-interactive";
  return {
    name: "yarn",
    lockfile: "yarn.lock",
    setup: `npm install --global --no-audit --no-fund --prefix ${TOOLS} yarn@${version}`,
    install: `${install} --production=false`,
    runScript: (script) => `yarn run ${script}`,
    prune: `${install} --production=true --ignore-scripts --prefer-offline`,
    manifests: ["package.json", "yarn.lock", ".npmrc", ".yarnrc"],
    cache: { id: "yarn", target: "/cache/yarn" },
    env: { YARN_CACHE_FOLDER: "/cache/yarn", ...TOOLS_PATH },
  };
}

function berry(version: string): Manager {
  return {
    name: "yarn",
    lockfile: "yarn.lock",
    setup: `npm install --global --no-audit --no-fund --prefix ${TOOLS} @yarnpkg/cli-dist@${version}`,
    install: "yarn install --immutable",
    runScript: (script) => `yarn run ${script}`,
    // Before version 4 this was a plugin.
    ...(/^[0-3]\./.test(version) ? {} : { prune: "yarn workspaces focus --all --production" }),
    manifests: ["package.json", "yarn.lock", ".yarnrc.yml"],
    cache: { id: "yarn", target: "/cache/yarn" },
    // With modules in their folder the application starts without yarn.
    env: {
      YARN_NODE_LINKER: "node-modules",
      YARN_GLOBAL_FOLDER: "/cache/yarn",
      YARN_ENABLE_TELEMETRY: "false",
      ...TOOLS_PATH,
    },
  };
}

function pnpmVersion(lockfile: string): string {
  const format = Number(/^lockfileVersion: ['"]?(\d+)/m.exec(lockfile)?.[1] ?? "9");
  return format >= 9 ? PNPM[9] : format >= 6 ? PNPM[6] : PNPM[5];
}

/** @throws PlanError `NPM_LOCKFILE_REQUIRED` */
export function requireManager(tree: Tree, pkg: PackageJson): Manager {
  const manager = detectManager(tree, pkg);
  if (manager === undefined) {
    throw new PlanError("NPM_LOCKFILE_REQUIRED");
  }
  return manager;
}

const names = z.record(z.string(), z.string()).optional().catch(undefined);

const schema = z.object({
  name: z.string().optional().catch(undefined),
  main: z.string().optional().catch(undefined),
  packageManager: z.string().optional().catch(undefined),
  scripts: names,
  dependencies: names,
  devDependencies: names,
  engines: names,
  workspaces: z.unknown().optional(),
});
export type PackageJson = z.output<typeof schema>;

/** @throws PlanError `DEPENDENCY_MANIFEST_INVALID` when it is no JSON object */
export function readPackageJson(tree: Tree): PackageJson {
  try {
    return schema.parse(JSON.parse(tree.text("package.json").replace(/^\uFEFF/, "")));
  } catch {
    throw new PlanError("DEPENDENCY_MANIFEST_INVALID", { name: "package.json" });
  }
}

/** The package's script that a command runs, undefined when it runs none. Pure. */
export function scriptOf(command: string): string | undefined {
  return /^(?:npm|yarn|pnpm)\s+(?:run|run-script)\s+(?:--?[\w-]+\s+)*([\w:.@/-]+)/.exec(command.trim())?.[1];
}

/** Whether npm, yarn and pnpm run something when dependencies are installed, which may want more than the manifests. Pure. */
export function hasInstallScripts({ scripts = {} }: PackageJson): boolean {
  return ["preinstall", "install", "postinstall", "prepare", "prepublish"].some(
    (name) => scripts[name] !== undefined,
  );
}
