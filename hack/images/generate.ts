/** Reads what the Dockerfile is made from. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { root } from "../lib/paths.ts";
import { dockerfile, dockerignore } from "./dockerfile.ts";

const manifest = z.object({
  workspaces: z.array(z.string()),
  dependencies: z.object({ node: z.string() }),
});

/** The Dockerfile and what its context leaves out, by path from the repository's root. */
export function generateDockerfile(): Map<string, string> {
  const { workspaces, dependencies } = manifest.parse(JSON.parse(read("package.json")));
  const inputs = {
    workspaces,
    node: dependencies.node.split(".")[0] ?? "",
    buildkit: requiredVersion("buildkit", "github.com/moby/buildkit"),
    crane: requiredVersion("crane", "github.com/google/go-containerregistry"),
  };
  return new Map([
    ["Dockerfile", dockerfile(inputs)],
    [".dockerignore", dockerignore(inputs)],
  ]);
}

/** The version of a Go module that the embedded cluster's programs are built from. */
function requiredVersion(program: string, module: string): string {
  const text = read(`hack/cluster/${program}/go.mod`);
  const version = new RegExp(`^(?:require )?\\s*${module.replaceAll(".", "\\.")} (v\\S+)`, "m").exec(
    text,
  )?.[1];
  if (version === undefined) {
    throw new Error(`hack/cluster/${program}/go.mod requires no ${module}`);
  }
  return version;
}

const read = (path: string): string => readFileSync(join(root, path), "utf8");
