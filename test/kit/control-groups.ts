import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlGroupFolders } from "../../hack/lib/control-group.ts";

/**
 * Whether this process may make a control group and set its share of the processors.
 * @param files those of which it sets one
 */
export async function mayMakeControlGroup(...files: string[]): Promise<boolean> {
  for (const folder of controlGroupFolders("slipway-test-allowed")) {
    try {
      await mkdir(folder);
    } catch {
      continue;
    }
    try {
      await Promise.any(files.map((file) => writeFile(join(folder, file), "1", { flag: "r+" })));
      return true;
    } catch {
      // Of the other version.
    } finally {
      await rmdir(folder);
    }
  }
  return false;
}
