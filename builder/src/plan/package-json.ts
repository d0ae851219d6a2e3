import { z } from "zod";
import { PlanError, type Tree } from "./input.ts";

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
