import { type Context, chooseStart, isSafeName, type Planned } from "./context.ts";
import { buildStage, imageLines, run } from "./dockerfile.ts";
import { PlanError, type Tree } from "./input.ts";

const CACHES = [
  { id: "go-modules", target: "/go/pkg/mod" },
  { id: "go-build", target: "/cache/go-build" },
];

/** Folders that programs read when they run; a program that embeds its files needs none of them. */
const ASSETS = ["assets", "config", "data", "migrations", "public", "static", "templates", "views", "web"];

/** Whom the program trusts over TLS: the small image has no list of its own. */
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";

/** A Go program: one static binary, beside the folders that it may read. */
export function planGo(context: Context): Planned {
  const { tree, image, port, commands, detected } = context;
  if (!tree.has("go.mod")) {
    throw new PlanError("DEPENDENCY_MANIFEST_MISSING", { name: "go.mod" });
  }
  const module = tree.text("go.mod");
  if (
    !tree.has("go.sum") &&
    /^\s*(require\s+)?[\w.-]+\.[\w.-]+\/\S+ v\d/m.test(module) &&
    !tree.hasFolder("vendor")
  ) {
    throw new PlanError("DEPENDENCY_LOCKFILE_REQUIRED", { name: "go.sum" });
  }
  const name = binaryName(tree, module);
  // A build command alone decides what is made, and where: all of it goes into the image.
  const own = commands.build !== undefined;
  const target = own ? undefined : mainPackage(tree);
  if (target !== undefined) {
    detected(`The program is the package "${target}".`);
  }
  const start = chooseStart(context, () => (own ? undefined : [`/app/${name}`]));
  const manifests = ["go.mod", "go.sum"].filter((path) => tree.has(path));
  const isWorkspace =
    tree.has("go.work") || /^replace .*=> \.{1,2}\//m.test(module) || tree.hasFolder("vendor");
  const preBuild = commands.preBuild;
  const needsAll = preBuild !== undefined || isWorkspace;
  return {
    stages: [
      {
        from: image.build,
        name: "dependencies",
        phase: "install",
        lines: [
          // The toolchain is the requested version, not one that go.mod would have downloaded.
          ...buildStage({
            GOCACHE: "/cache/go-build",
            GOMODCACHE: "/go/pkg/mod",
            GOTOOLCHAIN: "local",
            CGO_ENABLED: "0",
          }),
          needsAll ? "COPY . ./" : `COPY ${manifests.join(" ")} ./`,
          ...(preBuild === undefined && tree.hasFolder("vendor")
            ? []
            : [run(preBuild ?? "go mod download", CACHES)]),
        ],
      },
      {
        from: "dependencies",
        name: "build",
        phase: "build",
        lines: [
          ...(needsAll ? [] : ["COPY . ./"]),
          run(commands.build ?? `go build -trimpath -ldflags "-s -w" -o /out/${name} ${target}`, CACHES),
        ],
      },
      {
        from: image.run,
        phase: "package",
        lines: imageLines({
          from: "build",
          copies: own ? { [AUTHORITIES]: AUTHORITIES, "/app": "./" } : copies(tree),
          env: { PATH: "/app:$PATH" },
          port,
          start,
        }),
      },
    ],
    start,
  };
}

function copies(tree: Tree): Record<string, string> {
  const folders = ASSETS.filter((folder) => tree.hasFolder(folder));
  return {
    [AUTHORITIES]: AUTHORITIES,
    "/out/": "./",
    ...Object.fromEntries(folders.map((folder) => [`/app/${folder}`, `./${folder}`])),
  };
}

/** The name that `go build` would choose, unless a folder has it. */
function binaryName(tree: Tree, module: string): string {
  const path = /^module\s+"?([^\s"]+)"?/m.exec(module)?.[1] ?? "";
  const last =
    path
      .replace(/\/v\d+$/, "")
      .split("/")
      .at(-1) ?? "";
  return isSafeName(last) && !tree.hasFolder(last) ? last : "application";
}

/** @throws PlanError `GO_MAIN_PACKAGE_REQUIRED` unless exactly one package can be meant */
function mainPackage(tree: Tree): string {
  const isMain = (path: string): boolean =>
    !path.endsWith("_test.go") && /^package main\b/m.test(tree.text(path));
  if (tree.matching((path) => /^[^/]+\.go$/.test(path) && isMain(path)).length > 0) {
    return ".";
  }
  const found = tree.matching((path) => /^cmd\/[^/]+\/[^/]+\.go$/.test(path) && isMain(path));
  const folders = [...new Set(found.map((path) => path.split("/")[1] ?? ""))].filter(isSafeName);
  const only =
    folders.length === 1 ? folders[0] : folders.find((folder) => folder === "server" || folder === "app");
  if (only === undefined) {
    throw new PlanError("GO_MAIN_PACKAGE_REQUIRED", folders.length > 1 ? { name: folders.join(", ") } : {});
  }
  return `./cmd/${only}`;
}
