import { isPlain } from "./command.ts";
import { type Context, chooseStart, isSafeName, type Planned } from "./context.ts";
import { buildStage, imageLines, run, type Stage } from "./dockerfile.ts";
import { PlanError } from "./input.ts";
import {
  detectManager,
  hasInstallScripts,
  type Manager,
  type PackageJson,
  readPackageJson,
  requireManager,
  scriptOf,
} from "./node-manager.ts";

/** A Node.js server: install, build, prune, run. */
export function planNode(context: Context): Planned {
  const { tree, image, port } = context;
  if (!tree.has("package.json")) {
    return planScript(context);
  }
  const pkg = readPackageJson(tree);
  const stages = nodeBuildStages(context, pkg, image.build);
  const start = chooseStart(context, () => detectStart(context, pkg));
  const last = pruneStage(context, pkg, start);
  return {
    stages: [
      ...stages,
      ...(last === undefined ? [] : [last]),
      {
        from: image.run,
        phase: "package",
        lines: imageLines({
          from: last === undefined ? "build" : "production",
          env: { NODE_ENV: "production", PATH: "/app/node_modules/.bin:$PATH" },
          port,
          start,
        }),
      },
    ],
    start,
  };
}

/** Stages `dependencies` and `build`: sites are made by them too. */
export function nodeBuildStages(context: Context, pkg: PackageJson, image: string): Stage[] {
  const { tree, commands, detected } = context;
  const manager = commands.preBuild === undefined ? requireManager(tree, pkg) : detectManager(tree, pkg);
  if (manager !== undefined) {
    detected(`${manager.lockfile} says what ${manager.name} installs.`);
  }
  checkLockfileOf(context, manager);
  const build = buildCommand(context, pkg, manager);
  const caches = manager === undefined ? [] : [manager.cache];
  // Whatever runs while installing may want any file; otherwise the manifests alone keep the step's cache longer.
  const needsAll =
    commands.preBuild !== undefined ||
    pkg.workspaces !== undefined ||
    hasInstallScripts(pkg) ||
    usesFiles(pkg, context);
  const manifests = (manager?.manifests ?? []).filter((path) => tree.has(path));
  return [
    {
      from: image,
      name: "dependencies",
      phase: "install",
      lines: [
        ...buildStage({ CI: "true", ...manager?.env }),
        ...(manager?.setup === undefined ? [] : [run(manager.setup)]),
        needsAll ? "COPY . ./" : `COPY ${manifests.join(" ")} ./`,
        run(commands.preBuild ?? manager?.install ?? ":", caches),
      ],
    },
    {
      from: "dependencies",
      name: "build",
      phase: "build",
      lines: [...(needsAll ? [] : ["COPY . ./"]), ...(build === undefined ? [] : [run(build, caches)])],
    },
  ];
}

/** Patches and packages of the repository itself are read while installing. */
function usesFiles({ dependencies, devDependencies }: PackageJson, { tree }: Context): boolean {
  const ranges = Object.values({ ...dependencies, ...devDependencies });
  return (
    ranges.some((range) => /^(file|link|portal|workspace|patch):|^\.{0,2}\//.test(range)) ||
    tree.hasFolder("patches") ||
    tree.hasFolder(".yarn") ||
    tree.has("pnpm-workspace.yaml") ||
    tree.has(".pnpmfile.cjs")
  );
}

/** `npm ci` as the client's own command fails for the same reason as ours. */
function checkLockfileOf({ commands }: Context, manager: Manager | undefined): void {
  if (manager === undefined && /^npm (ci|clean-install)\b/.test(commands.preBuild ?? "")) {
    throw new PlanError("NPM_LOCKFILE_REQUIRED");
  }
}

function buildCommand(
  { commands, detected }: Context,
  pkg: PackageJson,
  manager: Manager | undefined,
): string | undefined {
  if (commands.build !== undefined) {
    const script = scriptOf(commands.build);
    if (script !== undefined && pkg.workspaces === undefined && pkg.scripts?.[script] === undefined) {
      throw new PlanError("NODE_BUILD_SCRIPT_MISSING", { name: script });
    }
    return commands.build;
  }
  if (pkg.scripts?.build === undefined) {
    detected("There is no script `build`: nothing is compiled.");
    return undefined;
  }
  return manager?.runScript("build") ?? "npm run build";
}

function detectStart({ tree, detected }: Context, pkg: PackageJson): string | undefined {
  const script = pkg.scripts?.start;
  if (script !== undefined && script.trim() !== "" && isPlain(script)) {
    if (pkg.scripts?.prestart !== undefined || pkg.scripts?.poststart !== undefined) {
      return "npm start";
    }
    // Without npm between, the application gets SIGTERM and is process 1's only child.
    detected("The start command is the script `start`, run without npm.");
    return script;
  }
  const main = pkg.main?.replace(/^\.\//, "");
  const file = [main, "server.js", "index.js", "app.js", "src/index.js"].find(
    (path) => path !== undefined && isSafeName(path) && /\.[cm]?[jt]s$/.test(path) && tree.has(path),
  );
  return file === undefined ? undefined : `node ${file}`;
}

/** What only the build needs is removed, unless the application starts with it. */
function pruneStage({ tree, note }: Context, pkg: PackageJson, start: readonly string[]): Stage | undefined {
  const manager = detectManager(tree, pkg);
  const development = Object.keys(pkg.devDependencies ?? {});
  if (manager === undefined || development.length === 0) {
    return undefined;
  }
  const words = new Set(start.flatMap((word) => word.split(/[\s;&|()]+/)));
  const needed = development.find((name) => words.has(name) || words.has(name.replace(/^.*\//, "")));
  // `npm start` and the like run a script that is not evaluated.
  const isScript = words.has("npm") || words.has("yarn") || words.has("pnpm") || words.has("npx");
  if (needed !== undefined || isScript || manager.prune === undefined || tree.has("pnpm-workspace.yaml")) {
    note("Development dependencies stay in the image, since the start command may need them.");
    return undefined;
  }
  return { from: "build", name: "production", phase: "prune", lines: [run(manager.prune, [manager.cache])] };
}

/** Files of JavaScript without a package.json: there is nothing to install. */
function planScript(context: Context): Planned {
  const { tree, image, port, commands } = context;
  if (commands.start === undefined && tree.first("server.js", "index.js", "app.js") === undefined) {
    throw new PlanError("DEPENDENCY_MANIFEST_MISSING", { name: "package.json" });
  }
  const start = chooseStart(context, () => {
    const file = tree.first("server.js", "index.js", "app.js");
    return file === undefined ? undefined : ["node", file];
  });
  const own = [commands.preBuild, commands.build].filter((command) => command !== undefined);
  return {
    stages: [
      {
        from: image.build,
        name: "build",
        phase: "build",
        lines: [...buildStage(), "COPY . ./", ...own.map((command) => run(command))],
      },
      {
        from: image.run,
        phase: "package",
        lines: imageLines({ from: "build", env: { NODE_ENV: "production" }, port, start }),
      },
    ],
    start,
  };
}
