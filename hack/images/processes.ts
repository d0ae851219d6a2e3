/** What the images of the platform's processes have, however they are built: by hack/images here, by the Dockerfile elsewhere. Pure. */
import { baseUser } from "./base/os.ts";
import type { ImageConfig } from "./build.ts";
import { bundleOf } from "./bundle.ts";

/** The user of the operator and the API server. */
export const nodeUser = 65532;

/** What steps of a build run as. */
export const builderUser = baseUser;

/** The folder of the rooms. */
export const WORKDIR = "/app";

/** The rooms that run inside the operator and the API server. */
export const platformRooms = [
  "crds",
  "packages/process",
  "packages/controller-runtime",
  "packages/ledger",
  "packages/git",
  "builder",
  "packages/analytics",
  "collector",
  "recovery",
  "operator",
  "api-server",
];

/** The rooms that run in the steps of a build. */
export const builderRooms = ["crds", "builder"];

/** How npm packages are installed: as the lock file says, running nothing of theirs. */
export const installFlags = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];

/** What npm packages have for developers alone. */
export const developersFiles = ["*.d.ts", "*.d.mts", "*.d.cts", "*.map", ".package-lock.json"];

/** What sources have that no process loads: folders by their names, and files. */
export const testFolders = ["node_modules", "testdata", "testing", "fixtures"];
export const testFiles = "*.test.ts";

const path = "/usr/local/bin:/usr/bin:/bin";

/** The operator and the API server run from the same files; only the command differs. */
function platformConfig(name: "operator" | "api-server", ports: number[]): ImageConfig {
  return {
    cmd: ["node", bundleOf(name)],
    env: { PATH: path, NODE_ENV: "production" },
    user: `${nodeUser}:${nodeUser}`,
    workdir: WORKDIR,
    ports,
  };
}

export const operatorConfig = platformConfig("operator", [9090]);
export const apiServerConfig = platformConfig("api-server", [8080, 9090]);

/** Node's compiled sources, so that a process need not compile them at its start. Nothing writes to it at run time. */
export const COMPILE_CACHE = "/var/cache/node";

/** The builder's program. Without an argument it prints its usage, after loading all its modules. */
export const BUILDER_MAIN = "builder/src/main.ts";

export const builderConfig: ImageConfig = {
  cmd: ["node", BUILDER_MAIN],
  env: {
    PATH: path,
    HOME: "/home/app",
    LANG: "C.UTF-8",
    NODE_ENV: "production",
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  },
  user: `${builderUser}:${builderUser}`,
  workdir: WORKDIR,
};

/** Debian packages of the builder. */
export const builderPackages = ["git", "runc", "uidmap", "buildah"];

/** The numbers that steps of a build may use beside the user's own, inside the pod's user namespace. */
export const subordinateIds = "app:100000:65536\n";

/**
 * Its user namespaces are set up by two programs with a capability each, for a setuid bit is worth nothing where the file
 * system is mounted without them.
 */
export const builderCapabilities = {
  "usr/bin/newuidmap": "cap_setuid=ep",
  "usr/bin/newgidmap": "cap_setgid=ep",
};

/** Programs of others in the builder, in /usr/local/bin: where upstream's image has each. */
export const builderTools = {
  buildkitd: { image: "buildkit", path: "/usr/bin/buildkitd" },
  buildctl: { image: "buildkit", path: "/usr/bin/buildctl" },
  rootlesskit: { image: "buildkit", path: "/usr/bin/rootlesskit" },
  crane: { image: "crane", path: "/ko-app/crane" },
} as const;
