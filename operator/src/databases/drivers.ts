/** The engines that are carried out here, one line each. */

import type { EngineName } from "@slipway/crds";
import { clickhouseEngine } from "./clickhouse/driver.ts";
import type { Engine } from "./driver.ts";
import { mariadbEngine } from "./mariadb/driver.ts";
import { postgresqlEngine } from "./postgresql/driver.ts";
import { valkeyEngine } from "./valkey/driver.ts";

/** Makes every engine. They are kept for as long as the process: an engine may remember what it has done. */
export function engines(): ReadonlyMap<EngineName, Engine> {
  return new Map(
    [postgresqlEngine(), mariadbEngine(), clickhouseEngine(), valkeyEngine()].map((engine) => [
      engine.name,
      engine,
    ]),
  );
}
