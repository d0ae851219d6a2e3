/** Makes the bundle of a release; hack/release.sh calls this once Node and the dependencies are installed. */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { ensureBinary } from "./cluster/binaries.ts";
import { ensurePackages } from "./cluster/packages.ts";
import { aptPackages } from "./images/index.ts";
import { run } from "./lib/exec.ts";
import { logDir, root } from "./lib/paths.ts";
import { say, seconds, step, UserError } from "./lib/steps.ts";
import { BUNDLE, parseManifest } from "./releases/bundle/manifest.ts";
import { type PushOptions, pushBundle } from "./releases/bundle/push.ts";
import { checkSigningKey } from "./releases/bundle/signature.ts";
import { checkOut } from "./releases/bundle/sources.ts";
import { writeBundle } from "./releases/bundle/write.ts";
import { releasedCommit } from "./releases/recorded.ts";

const usage = `usage: hack/release.sh VERSION [--commit REVISION] [--out DIR] [--key FILE] [--databases default|all] [--programs on|off]
       hack/release.sh push DIR REGISTRY [--bundle-key FILE] [--plain-http]

Makes the bundle of a release: one directory with images, chart, definitions, sources, bills of materials, provenance and
checksums, from which hack/up.sh --bundle DIR installs. The same commit gives the same bytes.

  VERSION              like 0.2.0
  --commit REVISION    what it is made from: the commit that docs/releases/VERSION records, or HEAD
  --out DIR            a folder that does not exist yet, or dist/slipway-VERSION
  --key FILE           private P-256 key (PEM) that signs the checksums: openssl ecparam -genkey -name prime256v1 -noout -out FILE
  --databases WHICH    images of databases: one version of each engine (default), or all
  --programs on|off    the programs of the embedded cluster (on): a machine with the bundle compiles nothing

push sends the images and the chart of a bundle to a registry, with the credentials of docker login, and writes the chart's values
that name them there by digest.

  --bundle-key FILE    public key (PEM) that the bundle has to be signed with
  --plain-http         the registry has no TLS`;

async function push(
  bundle: string | undefined,
  registry: string | undefined,
  options: Pick<PushOptions, "plain" | "keyFile">,
): Promise<void> {
  if (bundle === undefined || registry === undefined) {
    throw new UserError("hack/release.sh push needs a bundle and a registry; --help lists the options");
  }
  const crane = await ensureBinary("crane");
  const values = await step("push", () => pushBundle(resolve(bundle), { ...options, registry, crane }));
  const file = `${resolve(bundle)}-values.yaml`;
  await writeFile(file, stringify(values));
  const { version } = parseManifest(await readFile(join(bundle, BUNDLE.manifest), "utf8"));
  say(
    `helm install slipway oci://${registry}/charts/slipway --version ${version} -n slipway-system --create-namespace -f ${file}`,
  );
}

async function main(argv: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h" },
      commit: { type: "string" },
      out: { type: "string" },
      key: { type: "string" },
      databases: { type: "string", default: "default" },
      programs: { type: "string", default: "on" },
      "bundle-key": { type: "string" },
      "plain-http": { type: "boolean", default: false },
    },
  });
  const [version = ""] = positionals;
  if (values.help) {
    console.log(usage);
    return;
  }
  if (version === "push") {
    const [, bundle, registry] = positionals;
    await push(bundle, registry, { plain: values["plain-http"], keyFile: values["bundle-key"] });
    return;
  }
  if (!/^\d+\.\d+\.\d+$/.test(version) || positionals.length !== 1) {
    throw new UserError("hack/release.sh needs a version, like 0.2.0; --help lists the options");
  }
  const { databases, programs } = values;
  if ((databases !== "default" && databases !== "all") || (programs !== "on" && programs !== "off")) {
    throw new UserError("--databases is default or all, --programs is on or off");
  }
  const out = resolve(values.out ?? join(root, "dist", `slipway-${version}`));
  if (existsSync(out)) {
    throw new UserError(`${out} exists already: remove it, or name another with --out`);
  }
  if (values.key !== undefined) {
    await checkSigningKey(values.key);
  }
  const start = performance.now();
  await mkdir(logDir, { recursive: true });
  const log = join(logDir, "release.log");
  await ensurePackages(aptPackages, log);
  const revision = values.commit ?? releasedCommit(version) ?? "HEAD";
  // Under its name it is whole: one that was interrupted is not taken for it.
  const draft = `${out}.draft`;
  await rm(draft, { recursive: true, force: true });
  const tree = await step(`sources of ${revision}`, () => checkOut(revision, log), log);
  try {
    const keyFile = values.key;
    const options = { version, out: draft, databases, programs: programs === "on", keyFile } as const;
    await step(`bundle of ${version}`, () => writeBundle(tree, options), log);
    await rename(draft, out);
  } finally {
    await rm(draft, { recursive: true, force: true });
    await tree.remove();
  }
  const [size = ""] = (await run("du", ["-sh", out])).split("\t");
  say(`${out}: ${size}, ${BUNDLE.checksums}${values.key ? " signed" : " not signed (--key)"}`);
  say(`made in ${seconds(performance.now() - start)}; install it with hack/up.sh --bundle ${out}`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`release: ${(error as Error).message}`);
  process.exitCode = 1;
}
