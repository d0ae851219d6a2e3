import type { Manager } from "@slipway/controller-runtime";
import { type MountedFile, sleep } from "@slipway/process";
import type { DatabaseImages } from "./settings.ts";
import type { Authority } from "./tls/authority.ts";

/** Follows the list of images, and makes the databases' authority known before the first database. */
export function addDatabaseFiles(
  manager: Manager,
  images: Pick<MountedFile<DatabaseImages>, "run">,
  authority: Authority,
): void {
  manager.addRunnable({ name: "database-images", leaderOnly: false, run: (signal) => images.run(signal) });
  manager.addRunnable({
    name: "database-authority",
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          await authority.current();
          return;
        } catch (error) {
          manager.log.error({ err: error }, "the databases' authority cannot be had; trying again");
          await sleep(manager.clock, 5_000, signal);
        }
      }
    },
  });
}
