/** The engines that are carried out here, one line each. */

import type { EngineName } from "@slipway/crds";
import { clickhouseEngine } from "./clickhouse/index.ts";
import type { Engine } from "./engine.ts";
import { mariadbEngine } from "./mariadb/index.ts";
import { postgresqlEngine } from "./postgresql/index.ts";
import { valkeyEngine } from "./valkey/index.ts";

/** Makes every engine. They are kept for as long as the process: an engine may remember what it has done. */
export function engines(): ReadonlyMap<EngineName, Engine> {
  return new Map(
    [postgresqlEngine(), mariadbEngine(), clickhouseEngine(), valkeyEngine()].map((engine) => [
      engine.name,
      engine,
    ]),
  );
}
