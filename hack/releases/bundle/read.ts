/** What a bundle says of itself, once it is known to be as it was made. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { say } from "../../lib/steps.ts";
import { verifyChecksums } from "./checksums.ts";
import { BUNDLE, parseManifest, type ReleaseManifest } from "./manifest.ts";
import { verifySignature } from "./signature.ts";

/**
 * Checks every byte of a bundle first.
 * @param keyFile public key that it has to be signed with; without one, only that its files are those of its own checksums is checked
 * @throws UserError for a bundle that is not as it was made
 */
export async function readRelease(folder: string, keyFile: string | undefined): Promise<ReleaseManifest> {
  if (keyFile === undefined) {
    say(
      "the signature is not checked, so the bundle may have been replaced: --bundle-key FILE names the public key of the release",
    );
  } else {
    await verifySignature(folder, keyFile);
  }
  await verifyChecksums(folder);
  const release = parseManifest(await readFile(join(folder, BUNDLE.manifest), "utf8"));
  say(
    `release ${release.version} of commit ${release.commit.slice(0, 8)}; its files are those of its checksums`,
  );
  return release;
}
