/** The engines whose databases can be backed up, one line each. */

import type { EngineScripts } from "./engine.ts";
import { mariadbScripts } from "./mariadb.ts";
import { postgresqlScripts } from "./postgresql.ts";
import { valkeyScripts } from "./valkey.ts";

const all: readonly EngineScripts[] = [postgresqlScripts, mariadbScripts, valkeyScripts];

/** Scripts of an engine; undefined where there are no backups of it. */
export function scriptsOf(type: string): EngineScripts | undefined {
  return all.find(({ name }) => name === type);
}
