import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../lib/paths.ts";
import { dockerfile, dockerignore } from "./dockerfile.ts";
import { platformRooms } from "./processes.ts";

const workspaces = ["crds", "builder", "recovery", "packages/git", "hack"];
const text = dockerfile({ workspaces, buildkit: "v1.2.3", crane: "v4.5.6", node: "24" });

/** The lines of a stage. */
function stage(name: string): string {
  const found = text.split("\n\n").find((one) => new RegExp(`^FROM \\S+ AS ${name}$`, "m").test(one));
  if (found === undefined) {
    throw new Error(`no stage ${name}`);
  }
  return found;
}

test("npm finds every workspace's package file, and a stage keeps those of none", () => {
  for (const room of workspaces) {
    expect(stage("manifests")).toContain(`COPY ${room}/package.json ${room}/\n`.trim());
  }
  expect(stage("builder-dependencies")).toContain(
    "rm -r package.json package-lock.json crds/package.json builder/package.json recovery packages/git hack ",
  );
});

test("the images have the user, the command and the ports of those that are built here", () => {
  expect(stage("platform")).toMatch(/\nUSER 65532:65532$/);
  expect(stage("api-server")).toMatch(/\nEXPOSE 8080 9090\nCMD \["node","dist\/api-server\.js"\]$/);
  expect(stage("builder")).toMatch(/\nUSER 1000:1000\nCMD \["node","builder\/src\/main\.ts"\]\n$/);
});

test("tools of others come from images of the versions that are built here", () => {
  expect(text).toContain("BUILDKIT_IMAGE=docker.io/moby/buildkit:v1.2.3-rootless\n");
  expect(text).toContain("CRANE_IMAGE=gcr.io/go-containerregistry/crane:v4.5.6\n");
});

test("the context has all that is copied", async () => {
  const context = dockerignore({ workspaces }).split("\n");
  for (const path of [...text.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, paths = ""]) =>
    paths.split(" "),
  )) {
    expect(context).toContain(`!${path}`);
  }
});

test("this repository's Dockerfile copies the sources of each room that runs", async () => {
  const written = await readFile(join(root, "Dockerfile"), "utf8");
  for (const room of platformRooms) {
    expect(written).toContain(`\nCOPY ${room} ${room}\n`);
  }
});
