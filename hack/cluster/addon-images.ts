import { copyFile, mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { packTar } from "../images/files.ts";
import { type BuiltImage, buildImage } from "../images/index.ts";
import { contentHash } from "../lib/hash.ts";
import { ensureBinary } from "./binaries.ts";
import type { BinaryName } from "./programs.ts";

/** Go programs that run as pods, each alone in an image without anything else but the machine's root certificates. */
export type AddonName = Extract<BinaryName, "pause" | "coredns" | "metrics-server" | "traefik" | "registry">;

/** Builds the image of a Go program, or finds it in the image cache. */
export async function addonImage(name: AddonName): Promise<BuiltImage> {
  const binary = await ensureBinary(name);
  return buildImage({
    name: `slipway/${name}`,
    layers: [
      {
        name,
        // The binary's folder is named after what it was built from.
        key: async () => contentHash(["addon", "1", basename(dirname(binary)), name]),
        write: async (tar, scratch) => {
          const folder = join(scratch, "root");
          await mkdir(join(folder, "tmp"), { recursive: true, mode: 0o1777 });
          await mkdir(join(folder, "etc/ssl/certs"), { recursive: true });
          await copyFile(binary, join(folder, name));
          await copyFile(
            "/etc/ssl/certs/ca-certificates.crt",
            join(folder, "etc/ssl/certs/ca-certificates.crt"),
          );
          await packTar(folder, tar);
        },
      },
    ],
    config: { entrypoint: [`/${name}`], user: "65532:65532" },
  });
}
