/** The engines that are supported, one line each. */

import type { EngineName } from "@slipway/crds";
import { clickhouseDriver } from "./clickhouse/driver.ts";
import type { DatabaseDriver } from "./driver.ts";
import { mariadbDriver } from "./mariadb/driver.ts";
import { postgresqlDriver } from "./postgresql/driver.ts";
import { valkeyDriver } from "./valkey/driver.ts";

/** Creates every driver. They are kept for as long as the process: a driver may remember what it has done. */
export function databaseDrivers(): ReadonlyMap<EngineName, DatabaseDriver> {
  return new Map(
    [postgresqlDriver(), mariadbDriver(), clickhouseDriver(), valkeyDriver()].map((driver) => [
      driver.name,
      driver,
    ]),
  );
}
