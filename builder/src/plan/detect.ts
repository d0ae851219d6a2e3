/** Which runtime a folder is for, and in which version, where nobody has said so. */

import type { Runtime, RuntimeCatalog, RuntimeId } from "../catalog.ts";
import { PlanError, type Tree } from "./input.ts";
import { readPackageJson } from "./node-manager.ts";

/**
 * Manifests of a language come before package.json, which many of their projects have beside it for the browser's part.
 * @returns the runtime, and the file that it was detected by
 * @throws PlanError `RUNTIME_NOT_DETECTED`
 */
export function detectRuntime(tree: Tree, hasStart: boolean): { runtime: RuntimeId; because: string } {
  const signs: [RuntimeId, string[]][] = [
    ["dockerfile", ["Dockerfile"]],
    ["go", ["go.mod"]],
    ["ruby", ["Gemfile"]],
    ["php", ["composer.json"]],
    ["java", ["pom.xml", "build.gradle", "build.gradle.kts"]],
    ["python", ["uv.lock", "poetry.lock", "Pipfile", "requirements.txt", "pyproject.toml", "manage.py"]],
    ["node", ["package.json"]],
    ["php", ["index.php", "public/index.php"]],
    ["static", ["index.html", "public/index.html"]],
    ["python", ["main.py", "app.py", "setup.py"]],
    ["node", ["server.js", "index.js"]],
  ];
  for (const [runtime, files] of signs) {
    const because = tree.first(...files);
    if (because !== undefined) {
      return runtime === "node" && because === "package.json" && !hasStart && isSite(tree)
        ? { runtime: "static", because: "package.json, which builds a site and starts nothing," }
        : { runtime, because };
    }
  }
  throw new PlanError("RUNTIME_NOT_DETECTED");
}

/** A package that builds pages and starts no server. */
function isSite(tree: Tree): boolean {
  const { scripts = {}, dependencies, devDependencies, main } = readPackageJson(tree);
  if (scripts.start !== undefined && !/^(react-scripts|vite|ng|parcel|gatsby)\b/.test(scripts.start)) {
    return false;
  }
  const names = Object.keys({ ...dependencies, ...devDependencies });
  const makers =
    /^(vite|react-scripts|@angular\/cli|gatsby|@11ty\/eleventy|parcel|@docusaurus\/core|vitepress|hexo)$/;
  const servers =
    /^(express|fastify|koa|@hapi\/hapi|hono|@nestjs\/core|next|nuxt|@remix-run\/node|@sveltejs\/kit)$/;
  const makesPages = names.some((name) => makers.test(name)) || tree.has("index.html");
  const serves = names.some((name) => servers.test(name)) || (main !== undefined && tree.has(main));
  return (
    scripts.build !== undefined &&
    makesPages &&
    !serves &&
    tree.first("server.js", "index.js", "app.js") === undefined
  );
}

/** The runtime of the catalog. @throws PlanError `RUNTIME_UNSUPPORTED` */
export function findRuntime(catalog: RuntimeCatalog, id: string): Runtime {
  const found = catalog.runtimes.find((runtime) => runtime.id === id);
  if (found === undefined) {
    throw new PlanError("RUNTIME_UNSUPPORTED", { name: id });
  }
  return found;
}

/**
 * The version that the repository requests, if there is one among those given; otherwise undefined.
 * @param versions that can be built
 * @param preferred is taken where it will do
 */
export function detectVersion(
  tree: Tree,
  runtime: RuntimeId,
  versions: readonly string[],
  preferred: string | undefined,
): string | undefined {
  const requested = requestedVersion(tree, runtime);
  if (requested === undefined) {
    return undefined;
  }
  const fitting = versions.filter((version) => fits(version, requested)).toSorted(compare);
  return preferred !== undefined && fitting.includes(preferred) ? preferred : fitting.at(-1);
}

function requestedVersion(tree: Tree, runtime: RuntimeId): string | undefined {
  const firstLine = (path: string): string | undefined => tree.text(path).trim().split("\n")[0] || undefined;
  switch (runtime) {
    case "node":
      return (
        firstLine(".nvmrc") ??
        firstLine(".node-version") ??
        (tree.has("package.json") ? readPackageJson(tree).engines?.node : undefined)
      );
    case "python":
      return (
        firstLine(".python-version") ??
        /^requires-python\s*=\s*["']([^"']+)/m.exec(tree.text("pyproject.toml"))?.[1]
      );
    case "ruby":
      return firstLine(".ruby-version") ?? /^ruby\s+["']([^"']+)/m.exec(tree.text("Gemfile"))?.[1];
    case "go":
      return /^go\s+(\d+\.\d+)/m.exec(tree.text("go.mod"))?.[1]?.replace(/^/, ">=");
    case "java":
      return /<(?:java\.version|maven\.compiler\.release)>(\d+)</
        .exec(tree.text("pom.xml"))?.[1]
        ?.replace(/^/, ">=");
    default:
      return undefined;
  }
}

/** Whether a version such as `20` or `3.12` lies in a range such as `v20.11.1`, `^20.1 || >=22`, `>=3.11,<4` or `3.12.*`. Pure. */
export function fits(version: string, range: string): boolean {
  return range.split("||").some((alternative) =>
    [...alternative.matchAll(/(>=|<=|!=|[<>^]|~[>=]?|={1,3})?\s*(?:ruby-|v)?(\d+(?:\.\d+)*)/g)].every(
      ([, sign, number]) => {
        const order = compare(version, trimTo(number ?? "", version));
        switch (sign) {
          case ">=":
          case ">":
            return order >= 0;
          case "<":
            return order < 0;
          case "<=":
            return order <= 0;
          case "!=":
            return true;
          default:
            return order === 0;
        }
      },
    ),
  );
}

/** As many parts of a version as the other has. */
const trimTo = (version: string, like: string): string =>
  version.split(".").slice(0, like.split(".").length).join(".");

function compare(a: string, b: string): number {
  const [left, right] = [a.split(".").map(Number), b.split(".").map(Number)];
  const length = Math.max(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) {
      return difference;
    }
  }
  return 0;
}
