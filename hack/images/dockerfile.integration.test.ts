import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isLong } from "../../test/kit/long.ts";
import { run } from "../lib/exec.ts";
import { root } from "../lib/paths.ts";
import { baseImages } from "./base/index.ts";
import { type BuiltImage, buildImage, type ImageRecipe } from "./build.ts";
import { inside } from "./inside.ts";
import { apiServer, operator } from "./node.ts";
import { buildah, localHost } from "./store.ts";

const nodeImage = `${localHost}/test/dockerfile-node:1`;
let scratch: string;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "slipway-dockerfile-"));
});
afterAll(() => rm(scratch, { recursive: true }));

/** In the place of upstream's image of Node: the base image of builds, with its user. */
async function makeNodeImage(): Promise<void> {
  const recipe = baseImages().find(({ name, version }) => name === "base/node" && version === "24");
  const base = await buildImage(recipe ?? baseImages()[0] ?? { name: "", layers: [], config: { user: "0" } });
  const container = await buildah(["from", "--quiet", "--pull-never", base.reference]);
  await buildah(["config", "--user", "0", "--env", "HOME=/root", container]);
  await buildah(["commit", "--quiet", container, nodeImage]);
  await buildah(["rm", container]);
}

/** Builds a stage of the Dockerfile, with this machine's npm settings and CA for that alone. */
async function buildStage(stage: string): Promise<string> {
  const reference = `${localHost}/test/dockerfile-${stage}:1`;
  const settings = (await run("npm", ["config", "get", "userconfig"])).trim();
  const own = join(scratch, "npmrc");
  await run("sh", ["-c", 'touch "$1" && { [ ! -f "$0" ] || cp "$0" "$1"; }', settings, own]);
  await writeFile(join(scratch, "none"), "");
  const certificate = process.env.NODE_EXTRA_CA_CERTS ?? join(scratch, "none");
  const from = ["--pull-never", "--build-arg", `NODE_IMAGE=${nodeImage}`];
  const here = ["--secret", `id=ca,src=${certificate}`, "--volume", `${own}:/root/.npmrc:ro`];
  const layers = ["--layers=false", "--file", join(root, "Dockerfile"), "--target", stage, "-t", reference];
  await buildah(["bud", "--quiet", ...from, ...here, ...layers, root]);
  return reference;
}

/** Hashes of all files in /app, by path. */
async function filesOf(image: Pick<BuiltImage, "reference">): Promise<string[]> {
  const { root: files, close } = await inside(image);
  try {
    const hashes = await run("sh", [
      "-c",
      'cd "$0" && find . -type f ! -name ".package-lock.json" -print0 | sort -z | xargs -0 sha256sum',
      join(files, "app"),
    ]);
    return hashes.split("\n").filter(Boolean);
  } finally {
    await close();
  }
}

async function configOf(reference: string): Promise<Record<string, unknown>> {
  const inspected = JSON.parse(await buildah(["inspect", "--type", "image", reference])) as {
    OCIv1: { config: Record<string, unknown> };
  };
  const { User, Cmd, WorkingDir, ExposedPorts, Entrypoint } = inspected.OCIv1.config;
  return { User, Cmd, WorkingDir, ExposedPorts, Entrypoint: Entrypoint ?? undefined };
}

async function expectTheSame(recipe: ImageRecipe, stage: string): Promise<void> {
  const here = await buildImage(recipe);
  const reference = await buildStage(stage);
  try {
    expect(await filesOf({ reference })).toEqual(await filesOf(here));
    expect(await configOf(reference)).toEqual(await configOf(here.reference));
  } finally {
    await buildah(["rmi", reference]);
  }
}

test.skipIf(!isLong)(
  "the Dockerfile builds the images of the operator and the API server with the files and settings of those built here (--long)",
  async () => {
    await makeNodeImage();
    try {
      await expectTheSame(operator(), "operator");
      await expectTheSame(apiServer(), "api-server");
    } finally {
      await buildah(["rmi", nodeImage]);
    }
  },
  1_200_000,
);
