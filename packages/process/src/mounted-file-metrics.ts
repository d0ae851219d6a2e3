import { basename } from "node:path";
import { Gauge, type Registry } from "prom-client";
import type { MountedFile } from "./mounted-file.ts";

/** Registers which mounted files a process could take over when it last read them; those that it does not have are left out. */
export function registerFiles(
  registry: Registry,
  files: readonly (Pick<MountedFile<unknown>, "path" | "isCurrent"> | undefined)[],
): void {
  new Gauge({
    name: "slipway_config_last_reload_successful",
    help: "Whether the version of a settings file that is there is in use: 0 while an earlier one is, since it cannot be read or is wrong.",
    labelNames: ["file"],
    registers: [registry],
    collect() {
      for (const file of files) {
        if (file) {
          this.set({ file: basename(file.path) }, file.isCurrent ? 1 : 0);
        }
      }
    },
  });
}
